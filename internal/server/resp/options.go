package resp

import (
	"cmp"
	"time"

	"github.com/weirlimit/weir/internal/server/operation"
)

// Options for New. The zero value of every field but the Service stands for its default.
type Options struct {
	// Service runs the operations. Required.
	*operation.Service
	// AuthTimeout is how long a connection may have no user before it is cut; it may be half as much
	// again. Default: 10s.
	AuthTimeout time.Duration
	// Store is the kind of store, as INFO tells it. Default: "memory".
	Store string
	// Version is weir's own, as INFO tells it. Default: "dev".
	Version string
	// MaxConnections is how many clients may be connected at once. One more gets an error, and is
	// closed. Default: 10,000.
	MaxConnections int
	// MaxPerAddress is how many clients one address, or one /64 of IPv6, may have. Default:
	// MaxConnections.
	MaxPerAddress int
	// MaxCommand is the most bytes of a command. Default and most: 1 MB; least: 1 KB.
	MaxCommand int
	// MaxKey is the most bytes of a key. Default: 64 KB.
	MaxKey int
	// MaxBuffered is the most bytes held for all clients together, beyond 16 KB of commands and 24
	// KB of replies for each: of long commands until their end, and of long replies until they are
	// read. A command beyond the bound is an error, and a client with replies beyond the bound is
	// cut. The clients of one address may hold a quarter. Default: 256 MB.
	MaxBuffered int64
	// CommandTimeout is how long a command may take to arrive, from its first byte, and a
	// transaction of more than 16 KB from its start to its end; it may be half as much again.
	// Default: 10s.
	CommandTimeout time.Duration
	// WriteTimeout is how long a client may take to read its replies before it is cut; it may be half as
	// much again. Default: 10s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a client may send nothing before it is cut. Default: for ever, as Redis has it: clients
	// keep connections in pools, and take one that was cut for a failure. TCP's keep-alive ends those of machines
	// that are gone. If it is set, it should be longer than clients keep a connection that they don't use.
	IdleTimeout time.Duration
}

const (
	mostArgs    = 1024     // arguments of a command
	loginArgs   = 10       // of a command of a connection without a user, as Redis has it
	loginSize   = 4 << 10  // bytes of such a command
	mostInline  = 64 << 10 // bytes of a command that is a line
	mostCommand = 1 << 20
	idleInput   = 512      // of an idle connection's input buffer
	leastInput  = 4 << 10  // of that buffer at first
	usualInput  = 16 << 10 // what that grows to, while commands are no longer
	flushAt     = 16 << 10 // replies are written when they are this long, though commands may be left
	usualOutput = 24 << 10 // of the buffer for replies that a connection keeps: room for those, and for a batch more
)

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.Store = cmp.Or(o.Store, "memory")
	o.AuthTimeout = cmp.Or(o.AuthTimeout, 10*time.Second)
	o.MaxConnections = cmp.Or(o.MaxConnections, 10_000)
	o.MaxCommand = min(max(cmp.Or(o.MaxCommand, mostCommand), 1<<10), mostCommand)
	o.MaxKey = cmp.Or(o.MaxKey, 64<<10)
	o.MaxBuffered = cmp.Or(o.MaxBuffered, 256<<20)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	o.WithDefaults()
	return o
}
