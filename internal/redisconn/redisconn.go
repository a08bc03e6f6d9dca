// Package redisconn makes the connections of a rueidis client for a store, so that the store can close those to a server
// that hangs: rueidis keeps them, and a goroutine for each command whose caller has gone, for as long as its write
// timeout.
package redisconn

import (
	"context"
	"crypto/tls"
	"math/bits"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/panics"
)

// Conns are the open connections of a client. The zero value has none.
type Conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// Dial is for [rueidis.ClientOption.DialCtxFn].
func (all *Conns) Dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	var c net.Conn
	var err error
	if config == nil {
		c, err = dialer.DialContext(ctx, "tcp", address)
	} else {
		c, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		if _, ok := err.(*net.OpError); !ok { //nolint:errorlint // of TLS, whose handshake comes before all commands
			err = &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
		return nil, err
	}
	made := &conn{Conn: c, conns: all, address: address}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = map[*conn]struct{}{}
	}
	all.open[made] = struct{}{}
	return made, nil
}

// Cut closes the connections to the addresses for which is returns true. Bytes that the server has not taken yet are
// not sent any more.
func (all *Conns) Cut(is func(address string) bool) {
	all.mu.Lock()
	var cut []*conn
	for c := range all.open {
		if is(c.address) {
			cut = append(cut, c)
		}
	}
	all.mu.Unlock()
	for _, c := range cut {
		c.cut()
	}
}

// A conn is one connection.
type conn struct {
	net.Conn
	conns   *Conns
	address string
	greeted atomic.Bool // the server has sent something
}

// Read reports that the connection was never made if it ends before the server has sent anything: the first command
// of a client is a greeting, and no other is sent before the reply to it.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.greeted.Load() {
		c.greeted.Store(true)
	}
	if err != nil && !c.greeted.Load() {
		return n, &net.OpError{Op: "dial", Net: "tcp", Addr: c.RemoteAddr(), Err: err}
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.conns.mu.Lock()
	delete(c.conns.open, c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}

// cut closes the connection without the goodbye of TLS, which a server that hangs does not take.
func (c *conn) cut() {
	raw := c.Conn
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // unsent bytes are dropped; if that can't be, they are sent
	}
	_ = raw.Close()
}

// A Connector makes a client, one attempt at a time. rueidis connects before it returns a client, and takes no context.
type Connector struct {
	Option rueidis.ClientOption

	mu      sync.Mutex
	attempt *attempt
}

type attempt struct {
	done   chan struct{}
	client rueidis.Client
	err    error
	left   bool // nobody waits for the client
}

// Connect returns a client that has connected. If ctx ends before, the attempt goes on, and the next Connect has its result.
func (c *Connector) Connect(ctx context.Context) (rueidis.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	a := c.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		c.attempt = a
		go func() {
			var client rueidis.Client
			err := panics.Catch(func() (err error) {
				client, err = rueidis.NewClient(c.Option)
				return err
			})
			c.mu.Lock()
			defer c.mu.Unlock()
			a.client, a.err = client, err
			if a.left && err == nil {
				client.Close()
			}
			close(a.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempt == a {
		c.attempt = nil
	}
	panics.Raise(a.err)
	return a.client, a.err
}

// Leave closes the client of an attempt that is still under way when there is one.
func (c *Connector) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.attempt
	if a == nil {
		return
	}
	c.attempt = nil
	select {
	case <-a.done:
		if a.err == nil {
			a.client.Close()
		}
	default:
		a.left = true
	}
}

// RingScale returns the rueidis.ClientOption.RingScaleEachConn with which so many calls find a place: a call that waits
// for a place does not mind its context.
func RingScale(calls int) int {
	return max(1, bits.Len(uint(max(calls, 1)-1)))
}
