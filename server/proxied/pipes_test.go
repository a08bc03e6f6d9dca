package proxied_test

import (
	"net"
	"sync"
)

// pipes are a listener without a network, for tests on a clock of their own.
type pipes struct {
	incoming chan any // a net.Conn or an error
	closed   chan struct{}
	once     sync.Once
}

func newPipes() *pipes { return &pipes{incoming: make(chan any), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case x := <-p.incoming:
		if err, failed := x.(error); failed {
			return nil, err
		}
		return x.(net.Conn), nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return tcp("127.0.0.1:6380") }

// dial connects from an address, and returns both ends.
func (p *pipes) dial(from net.Addr) (client net.Conn, server *end) {
	client, inner := net.Pipe()
	server = &end{Conn: inner, from: from, closed: make(chan struct{})}
	p.incoming <- server
	return client, server
}

// An end is the server's end of a pipe.
type end struct {
	net.Conn
	from   net.Addr
	once   sync.Once
	closed chan struct{}
}

func (e *end) RemoteAddr() net.Addr { return e.from }

func (e *end) Close() error {
	e.once.Do(func() { close(e.closed) })
	return e.Conn.Close()
}
