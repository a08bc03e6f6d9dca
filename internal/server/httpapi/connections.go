package httpapi

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

// silentTime is how long a connection without input is kept after a shutdown has begun.
const silentTime = 50 * time.Millisecond

// connections are those of a server.
type connections struct {
	guard    *guard.Guard
	accepted atomic.Int64
	mu       sync.Mutex
	silent   map[*countedConn]struct{} // have sent nothing yet
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

func (s *connections) add(c net.Conn, from *guard.Source) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent == nil {
		s.silent = map[*countedConn]struct{}{}
	}
	counted := &countedConn{Conn: c, server: s, source: from}
	s.silent[counted] = struct{}{}
	if secure, ok := c.(secured); ok {
		return secureConn{counted, secure}
	}
	return counted
}

// secured is a TLS connection after its handshake.
type secured interface{ ConnectionState() tls.ConnectionState }

// A secureConn is a countedConn over TLS. [http.Server] finds the state of TLS by its method.
type secureConn struct {
	*countedConn
	secured
}

// heard is called when a connection has sent something, or is closed.
func (s *connections) heard(c *countedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.silent, c)
}

// stateChanged is http.Server's ConnState: an idle connection has finished its requests.
func (s *connections) stateChanged(c net.Conn, state http.ConnState) {
	if counted, ok := c.(interface{ requestEnds() }); ok && state == http.StateIdle {
		counted.requestEnds()
	}
}

// A boundedListener refuses connections beyond a bound at once, rather than let them wait until
// slow clients leave.
type boundedListener struct {
	net.Listener
	server  *connections
	accepts func(*http.Request) *Problem // the check of a request's Host
}

// Accept returns the next connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s := l.server
		source, why, ok := s.guard.Admit(c.RemoteAddr())
		if ok {
			s.accepted.Add(1)
			return s.add(c, source), nil
		}
		s.guard.Refuse(c, why, func(c net.Conn) []byte { return l.refusal(c, why) }, func() {})
	}
}

// maxRefusedHeader is the largest header of a request on a refused connection, in bytes.
const maxRefusedHeader = 4 << 10

// refusal returns the response on a refused connection: 503, except for /healthz. A server with many
// clients is up, and a liveness probe must not end it.
func (l *boundedListener) refusal(c net.Conn, why guard.Reason) []byte {
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(c, maxRefusedHeader)))
	if err == nil && r.Method == http.MethodGet && r.URL.Path == "/healthz" && l.accepts(r) == nil {
		return healthy
	}
	return refusals[why]
}

// healthy is the response to /healthz on a refused connection.
var healthy = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n" +
	"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n")

// refusals are the responses to connections beyond a bound.
var refusals = map[guard.Reason][]byte{
	guard.Total:   refusal(http.StatusServiceUnavailable, "Retry-After: 1\r\n", "too many connections, try again"),
	guard.Address: refusal(http.StatusServiceUnavailable, "Retry-After: 1\r\n", "too many connections from one address, try again"),
}

// TLSRequired is the response to a client that does not speak TLS at a port with TLS.
var TLSRequired = refusal(http.StatusBadRequest, "", "this port speaks TLS: use https://")

func refusal(status int, fields, detail string) []byte {
	title := http.StatusText(status)
	body := fmt.Sprintf(`{"type":"about:blank","title":"%s","status":%d,"detail":"%s"}`+"\n", title, status, detail)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\n%s"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s", status, title, fields, len(body), body)
}

// A countedConn leaves the guard when it is closed, once.
type countedConn struct {
	net.Conn
	server *connections
	source *guard.Source
	first  sync.Once
	once   sync.Once
	late   sync.Once
	begun  atomic.Bool // a part of a request was read
	abort  atomic.Bool // http.Server set the read deadline in the past, to end a read
}

func (c *countedConn) requestEnds() { c.begun.Store(false) }

// SetReadDeadline sets the time until which reads wait.
func (c *countedConn) SetReadDeadline(t time.Time) error {
	c.abort.Store(!t.IsZero() && t.Before(time.Now()))
	return c.Conn.SetReadDeadline(t)
}

// Read reads from the connection.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.first.Do(func() {
			c.server.heard(c)
			if guard.IsTLS(b[:n]) {
				c.cut(guard.TLS)
			}
		})
		c.begun.Store(true)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.abort.Load() {
		why := guard.Idle
		if c.begun.Load() {
			why = guard.Unfinished
		}
		c.cut(why)
	}
	return n, err
}

// Write writes to the connection.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.cut(guard.Unread)
	}
	return n, err
}

// cut counts a slow connection, once: http.Server may read on before it closes the connection.
func (c *countedConn) cut(why guard.Reason) {
	c.late.Do(func() { c.server.guard.Count(why, c.RemoteAddr().String()) })
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.server.guard.Leave(c.source)
		c.server.heard(c)
	})
	return c.Conn.Close()
}
