package proxied

import "net"

// A conn is a connection after its header.
type conn struct {
	net.Conn
	rest   []byte // what came with the header, and is yet to be read
	client net.Addr
}

// RemoteAddr returns the address of the client.
func (c *conn) RemoteAddr() net.Addr { return c.client }

// Read reads what came after the header.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rest = nil
	}
	return n, nil
}

// CloseWrite ends what is sent, and goes on receiving.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}
