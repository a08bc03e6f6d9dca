package postgres

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// A dialer makes the connections of a pool, and can close all of them. pgx waits up to 15 s for a
// server that hangs before it gives a connection up, also at the end of the pool.
type dialer struct {
	dial pgconn.DialFunc

	mu     sync.Mutex
	conns  map[*tracked]struct{}
	closed bool
}

// newDialer returns a dialer that config uses from now on.
func newDialer(config *pgconn.Config) *dialer {
	d := &dialer{dial: config.DialFunc, conns: map[*tracked]struct{}{}}
	config.DialFunc = d.connect
	return d
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	inner, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(net.ErrClosed, inner.Close())
	}
	c := &tracked{inner, d}
	d.conns[c] = struct{}{}
	return c, nil
}

// close closes all connections, and new ones at once.
func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.conns {
		_ = c.Conn.Close() // nothing is left to be sent
	}
	clear(d.conns)
}

// A tracked connection is known to its dialer until Close.
type tracked struct {
	net.Conn

	dialer *dialer
}

// Close implements net.Conn.
func (c *tracked) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
