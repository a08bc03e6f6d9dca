package httpapi

import (
	"net"
	"sync"
)

// A boundedListener closes connections beyond a number at once, rather than let them wait for a turn that
// slow clients may never give up.
type boundedListener struct {
	net.Listener
	most   int64
	counts *counts
}

// Accept returns the next connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.counts.connections.Add(1) <= l.most {
			l.counts.accepted.Add(1)
			return &countedConn{Conn: c, counts: l.counts}, nil
		}
		l.counts.connections.Add(-1)
		l.counts.refused.Add(1)
		_ = c.Close()
	}
}

// A countedConn is counted out when it is closed, once.
type countedConn struct {
	net.Conn
	counts *counts
	once   sync.Once
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() { c.counts.connections.Add(-1) })
	return c.Conn.Close()
}
