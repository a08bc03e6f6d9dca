package resp

import (
	"context"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
)

// A Server serves the Redis protocol. Make one with New.
type Server struct {
	options  Options
	parser   parser
	logins   parser // of connections without a user
	commands map[string]*command
	guard    *guard.Guard

	decisions latency.Decisions

	started  time.Time
	buffered atomic.Int64 // bytes of buffers, beyond what is usual for each
	freed    atomic.Int64 // bytes freed since the last collection

	closingSince atomic.Pointer[time.Time] // when a shutdown began, or nil

	ctx    context.Context //nolint:containedctx // of the operations on the store: it ends with the server, not with a call
	cancel context.CancelFunc

	freeMemory func()

	mu        sync.Mutex
	closing   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	lastID    int64
	past      operation.Stats // without open connections
	collected time.Time       // when memory was last returned
	done      sync.WaitGroup
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		options:  o,
		parser:   parser{maxCommand: o.MaxCommand, maxInline: min(mostInline, o.MaxCommand), maxArgs: mostArgs},
		logins:   parser{maxCommand: min(loginSize, o.MaxCommand), maxInline: min(loginSize, o.MaxCommand), maxArgs: loginArgs},
		commands: commands(),
		guard: guard.New(guard.Options{
			Protocol: "resp", Max: o.MaxConnections, MaxPerAddress: o.MaxPerAddress, Log: o.Log, Panics: o.Panics,
		}),
		started:    time.Now(),
		freeMemory: debug.FreeOSMemory,
		ctx:        ctx,
		cancel:     cancel,
		listeners:  map[net.Listener]struct{}{},
		conns:      map[*conn]struct{}{},
	}
}

// Serve answers the clients of a listener until Shutdown, and then returns nil. It closes the listener. It may
// be called for several listeners. Another error is the listener's.
func (s *Server) Serve(l net.Listener) error {
	defer func() { _ = l.Close() }()
	if !s.listen(l) {
		return nil
	}
	stop := make(chan struct{})
	defer close(stop)
	go s.options.Panics.Safe("resp: sweep", func() { s.sweep(stop) })()
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.options.Panics.Safe("resp: accept", func() { s.accept(nc) })()
		case s.isClosing():
			return nil
		default:
			return err
		}
	}
}

func (s *Server) listen(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.listeners[l] = struct{}{}
	}
	return !s.closing
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

func (s *Server) accept(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = nc.Close()
		return
	}
	source, why, ok := s.guard.Admit(nc.RemoteAddr())
	if !ok {
		s.done.Add(1)
		s.guard.Refuse(nc, why, func(net.Conn) []byte { return refusals[why] }, s.done.Done)
		return
	}
	s.lastID++
	s.past.Accepted++
	c := newConn(s, nc, s.lastID)
	c.source = source
	s.conns[c] = struct{}{}
	s.done.Go(s.options.Panics.Safe("resp: connection", c.serve)) // serve recovers but for its end
}

// refusals are the replies to connections beyond a bound. The first is Redis's.
var refusals = map[guard.Reason][]byte{
	guard.Total:   []byte("-ERR max number of clients reached\r\n"),
	guard.Address: []byte("-ERR max number of clients of one address reached\r\n"),
}

// TLSRequired is the reply to a client that does not speak TLS at a port with TLS.
var TLSRequired = []byte("-ERR TLS required: this port speaks TLS (redis-cli --tls, rediss://, weirs://)\r\n")

// forget is called by a connection when it ends.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.guard.Leave(c.source)
	s.past.Add(c.shown.Counts())
}

// Decisions returns the durations of decisions, from the end of the read that completed a command.
// Commands that were read together have the duration of all. The durations go on to be counted.
func (s *Server) Decisions() *latency.Decisions { return &s.decisions }

// Stats returns the counts. What is being carried out may not be in them yet.
func (s *Server) Stats() operation.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.past
	stats.Connections = int64(len(s.conns))
	stats.Reasons = s.guard.Counts()
	stats.Refused, stats.Cut = stats.Reasons.Refused(), stats.Reasons.Cut()
	for c := range s.conns {
		stats.Add(c.shown.Counts())
	}
	return stats
}
