package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/handshake"
)

const (
	// DefaultMaxConnections is the default of Config.MaxConnections.
	DefaultMaxConnections = 10_000
	// MostConnections is the largest MaxConnections accepted.
	MostConnections = 1_000_000
	// LeastIdleTimeout is the shortest IdleTimeout accepted.
	LeastIdleTimeout = time.Second
	// MostIdleTimeout is the longest IdleTimeout accepted.
	MostIdleTimeout = 30 * 24 * time.Hour

	// addressShare is the part of a protocol's connections for one address, without
	// Config.MaxConnectionsPerAddress.
	addressShare = 4
	// httpShare is the part of the open files reserved for HTTP when there are too few for both
	// protocols.
	httpShare = 4
	// reservedFiles are for the store, the clients, the configuration and refused connections.
	// proxiedFiles are for connections of proxies before their header, and tlsFiles for connections
	// before the end of their handshake.
	reservedFiles, proxiedFiles, tlsFiles = 256, 2 * 1024, 2 * handshake.MaxAtOnce
	// adminConnections is how many connections the admin listener serves at once, and adminShare
	// the largest part of the open files for them.
	adminConnections, adminShare = 64, 8
	// handshakeShare is the largest part of the open files for the handshakes of a protocol.
	handshakeShare = 8
)

// checkConnections returns an error for the first invalid bound on connections.
func (c Config) checkConnections() error {
	switch most := c.maxConnections(); {
	case most < 1 || most > MostConnections:
		return &ConfigError{"max-connections", strconv.Itoa(c.MaxConnections), "out of range", fmt.Sprintf("1 to %d", MostConnections)}
	case c.MaxConnectionsPerAddress < 0 || c.MaxConnectionsPerAddress > most:
		return &ConfigError{"max-connections-per-address", strconv.Itoa(c.MaxConnectionsPerAddress), "out of range",
			fmt.Sprintf("1 to %d, which is max-connections", most)}
	case c.IdleTimeout != 0 && (c.IdleTimeout < LeastIdleTimeout || c.IdleTimeout > MostIdleTimeout):
		return &ConfigError{"idle-timeout", c.IdleTimeout.String(), "out of range",
			fmt.Sprintf("%v to %v, or 0", LeastIdleTimeout, MostIdleTimeout)}
	}
	return nil
}

// connectionBounds are the bounds on the connections of a protocol.
type connectionBounds struct{ total, perAddress int }

// adminBounds returns the bounds of the admin listener in a process that may have so many files
// open; 0: any number. They do not depend on the configuration, and connectionBounds leaves room for
// them: health and metrics answer under any number of clients.
func adminBounds(files int) connectionBounds {
	total := adminConnections
	if files > 0 {
		total = max(1, min(total, files/adminShare))
	}
	return connectionBounds{total, max(min(total, 4), total/addressShare)}
}

// handshakeBounds returns the bounds of the TLS handshakes of a protocol, in a process that may have so
// many files open; 0: any number.
func handshakeBounds(files int) connectionBounds {
	total := handshake.MaxAtOnce
	if files > 0 {
		total = max(1, min(total, files/handshakeShare))
	}
	return connectionBounds{total, max(1, min(handshake.MaxPerAddress, total/addressShare))}
}

// connectionBounds returns the bounds of both protocols in a process that may have so many files
// open; 0: any number. Where the files do not suffice, a part is reserved for HTTP, so its health
// answers under any number of clients of the Redis protocol.
func (c Config) connectionBounds(files int) (resp, http connectionBounds) {
	most := [2]int{c.maxConnections(), c.maxConnections()}
	if files > 0 {
		reserved := reservedFiles
		if len(c.ProxyProtocolFrom) > 0 {
			reserved += proxiedFiles
		}
		if c.Admin != Off {
			reserved += adminBounds(files).total
		}
		if c.TLSCert != "" {
			reserved += tlsFiles
		}
		free := max(2, files-reserved, files/2)
		switch {
		case c.RESP == Off:
			most[1] = min(most[1], free)
		case c.HTTP == Off:
			most[0] = min(most[0], free)
		case free < most[0]+most[1]:
			most[1] = min(most[1], max(1, free/httpShare))
			most[0] = min(most[0], free-most[1])
		}
	}
	each := func(total int) connectionBounds {
		perAddress := c.MaxConnectionsPerAddress
		if perAddress == 0 {
			perAddress = max(1, total/addressShare)
		}
		return connectionBounds{total, min(perAddress, total)}
	}
	return each(most[0]), each(most[1])
}

func (c Config) maxConnections() int { return cmp.Or(c.MaxConnections, DefaultMaxConnections) }

// logBounds logs bounds below the configuration, for want of open files.
func (c Config) logBounds(files int) {
	resp, http := c.connectionBounds(files)
	if (c.RESP == Off || resp.total == c.maxConnections()) && (c.HTTP == Off || http.total == c.maxConnections()) {
		return
	}
	level := slog.LevelInfo
	if c.MaxConnections > 0 {
		level = slog.LevelWarn
	}
	c.Log.Log(context.Background(), level, "fewer connections than max-connections: the limit of open files is too low (ulimit -n)",
		"max_connections", c.maxConnections(), "files", files, "resp", resp.total, "http", http.total)
}

// serveSafely serves a protocol. A panic of its listener is an error, as all its failures are.
func (p *protocol) serveSafely(panics *guard.Panics) (err error) {
	defer func() {
		if panics.Caught(p.name+": listener", recover()) {
			err = fmt.Errorf("server: the listener of %s panicked", p.name)
		}
	}()
	return p.server.Serve(p.listener)
}
