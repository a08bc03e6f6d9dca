package httpapi

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// silentTime is how long a connection that has not sent anything is kept after a shutdown has begun.
	silentTime = 50 * time.Millisecond
	// refusalTime is how long a connection that is refused may take to go.
	refusalTime = 200 * time.Millisecond
)

// connections are those of a server.
type connections struct {
	most   int64
	counts *counts
	mu     sync.Mutex
	silent map[*countedConn]struct{} // have sent nothing yet
}

// closeSilent closes the connections that have sent nothing. http.Server would wait for them as for requests in flight.
func (s *connections) closeSilent() {
	s.mu.Lock()
	silent := s.silent
	s.silent = nil
	s.mu.Unlock()
	for c := range silent {
		_ = c.Close()
	}
}

func (s *connections) add(c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent == nil {
		s.silent = map[*countedConn]struct{}{}
	}
	counted := &countedConn{Conn: c, server: s}
	s.silent[counted] = struct{}{}
	return counted
}

// heard is called when a connection has sent something, or is closed.
func (s *connections) heard(c *countedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.silent, c)
}

// A boundedListener refuses connections beyond a number at once, rather than let them wait for a turn that
// slow clients may never give up.
type boundedListener struct {
	net.Listener
	server *connections
}

// Accept returns the next connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		counts := l.server.counts
		if counts.connections.Add(1) <= l.server.most {
			counts.accepted.Add(1)
			return l.server.add(c), nil
		}
		counts.connections.Add(-1)
		counts.refused.Add(1)
		go turnAway(c)
	}
}

const busy = `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"too many connections, try again"}` + "\n"

var turnedAway = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"+
	"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(busy), busy)

// turnAway says why before it closes. It reads what the client sends meanwhile, because the operating system would
// throw the answer away if input was left.
func turnAway(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(refusalTime))
	_, err := c.Write(turnedAway)
	half, ok := c.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		return
	}
	for scrap := make([]byte, 1<<10); err == nil; {
		_, err = c.Read(scrap)
	}
}

// A countedConn is counted out when it is closed, once.
type countedConn struct {
	net.Conn
	server *connections
	first  sync.Once
	once   sync.Once
}

// Read reads from the connection.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.first.Do(func() { c.server.heard(c) })
	}
	return n, err
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.server.counts.connections.Add(-1)
		c.server.heard(c)
	})
	return c.Conn.Close()
}
