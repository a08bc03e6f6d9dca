// Package handshake listens for TLS connections. Handshakes take place outside of Accept, with
// bounds on their time and number.
package handshake

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/preface"
)

const (
	// Timeout bounds the time of a handshake.
	Timeout = 5 * time.Second
	// MaxAtOnce is how many handshakes may take place at once.
	MaxAtOnce = 1024
	// MaxPerAddress is how many of them may be of one address.
	MaxPerAddress = MaxAtOnce / 4

	// plainTime is how long a client without TLS may take to read the reply.
	plainTime = 200 * time.Millisecond
	// alertTime is how long the last alert of a connection may wait for its client to read.
	alertTime = 5 * time.Millisecond
	// maxErrorText bounds the text of an error in the log, in bytes: clients choose parts of it.
	maxErrorText = 200
)

// Options for Listen. All are required.
type Options struct {
	// Config returns the configuration of the next handshake.
	Config func() *tls.Config
	// Guard bounds the handshakes, and counts refused and failed handshakes.
	Guard *guard.Guard
	// Plain is the reply to clients that do not speak TLS.
	Plain []byte
	// Panics recovers from panics.
	Panics *guard.Panics
}

// Listen returns a listener over l, which it owns. Its connections are a *Conn after the handshake.
func Listen(l net.Listener, o Options) net.Listener {
	return preface.Listen(l, preface.Options{Read: o.shake, Timeout: Timeout, Bounds: o.Guard, Failed: o.failed, Panics: o.Panics})
}

// errNothing is the error for a connection that its client closed before the first byte: a check
// whether the port is open.
var errNothing = errors.New("closed before the first byte")

// shake does the handshake of a connection.
func (o Options) shake(c net.Conn) (net.Conn, error) {
	inner := &inner{Conn: c}
	conn := &Conn{Conn: tls.Server(inner, o.Config()), inner: inner}
	err := conn.Handshake() //nolint:noctx // the connection has a deadline, and Close of the listener ends it
	if err == nil {
		return conn, nil
	}
	if errors.Is(err, io.EOF) && !inner.heard {
		return nil, errNothing
	}
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		_ = c.SetDeadline(time.Now().Add(plainTime))
		_, _ = c.Write(o.Plain)
		guard.Linger(c, plainTime, plainTime, plainTime)
	}
	return nil, err
}

// failed counts a connection without a handshake.
func (o Options) failed(c net.Conn, err error) {
	why := guard.Handshake
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		why = guard.Plain
	}
	switch {
	case errors.Is(err, errNothing):
		return
	case errors.Is(err, preface.ErrTooMany):
		why = guard.Handshakes
	}
	text := err.Error()
	o.Guard.Count(why, c.RemoteAddr().String(), "error", text[:min(len(text), maxErrorText)])
}

// A Conn is a TLS connection after its handshake.
type Conn struct {
	*tls.Conn
	inner *inner
}

// CloseWrite sends the alert that nothing more will be sent. It hardly waits for the client.
func (c *Conn) CloseWrite() error {
	c.inner.ending.Store(true)
	return c.Conn.CloseWrite()
}

// Close closes the connection. It hardly waits for a client that does not read: [tls.Conn] would
// wait for 5 s, and a shutdown closes all connections one after another.
func (c *Conn) Close() error {
	c.inner.ending.Store(true)
	return c.Conn.Close()
}

// An inner is the connection below TLS.
type inner struct {
	net.Conn
	heard  bool // a byte was read
	ending atomic.Bool
}

// Read reads from the connection.
func (c *inner) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard {
		c.heard = true
	}
	return n, err
}

// SetWriteDeadline sets the time until which writes wait, and at the end of the connection an
// earlier time.
func (c *inner) SetWriteDeadline(t time.Time) error {
	if last := time.Now().Add(alertTime); c.ending.Load() && t.After(last) {
		t = last
	}
	return c.Conn.SetWriteDeadline(t)
}
