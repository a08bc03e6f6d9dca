// Package testpipe is a listener without a network, for tests on a clock of their own.
package testpipe

import (
	"net"
	"net/netip"
	"sync"
)

// A Listener accepts the connections of Dial. Make one with New.
type Listener struct {
	// Incoming has connections of Dial, and errors for Accept.
	Incoming chan any

	closed chan struct{}
	once   sync.Once
}

// New returns a listener.
func New() *Listener { return &Listener{Incoming: make(chan any), closed: make(chan struct{})} }

// Accept returns the next element of Incoming.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case x := <-l.Incoming:
		if err, failed := x.(error); failed {
			return nil, err
		}
		return x.(net.Conn), nil //nolint:forcetypeassert // documented
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address of a server.
func (l *Listener) Addr() net.Addr { return TCP("127.0.0.1:6380") }

// Dial connects from an address, and returns both ends, once Accept has returned the server's.
func (l *Listener) Dial(from net.Addr) (client net.Conn, server *End) {
	client, inner := net.Pipe()
	server = &End{Conn: inner, Closed: make(chan struct{}), from: from}
	l.Incoming <- server
	return client, server
}

// An End is the server's end of a connection.
type End struct {
	net.Conn
	// Closed is closed by Close.
	Closed chan struct{}

	from net.Addr
	once sync.Once
}

// RemoteAddr returns the address of Dial.
func (e *End) RemoteAddr() net.Addr { return e.from }

// Close closes the connection.
func (e *End) Close() error {
	e.once.Do(func() { close(e.Closed) })
	return e.Conn.Close()
}

// TCP returns the address of a text such as 127.0.0.1:6380.
func TCP(text string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
