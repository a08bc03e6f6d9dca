package resp

import (
	"context"
	"net"
	"time"
)

const (
	// drainTime is how long a connection goes on reading after a shutdown has begun, so that commands that had
	// arrived by then are carried out. The time in which it waits for its client to read does not count.
	drainTime = 50 * time.Millisecond
	// lingerTime is how long a connection that the server ends waits for its client to end it too.
	lingerTime = 200 * time.Millisecond
	// lingerOn is how long it waits during a shutdown after a client has sent more, or was slow to read, and lingerMost
	// how long in all.
	lingerOn   = time.Second
	lingerMost = 10 * time.Second
)

// Shutdown stops listening, carries out the commands that have arrived, writes their replies and closes the
// connections. Commands that a client still sends some 50 ms later are dropped; the replies to those before are
// not, as long as it takes them. When ctx ends before that is done it closes the connections at once, and returns the
// context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.cancel()
	s.drain()
	done := make(chan struct{})
	go func() {
		s.done.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.conns {
			_ = c.net.Close()
		}
		return ctx.Err()
	}
}

func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.closing = true
	s.closingSince.CompareAndSwap(nil, &now)
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		_ = c.net.SetReadDeadline(now.Add(drainTime))
	}
}

// drainBegins returns the time during a shutdown, and zero before: a look at the clock is dear.
func (c *conn) drainBegins() (now time.Time) {
	if c.server.closingSince.Load() != nil {
		now = time.Now()
	}
	return now
}

// drainLater puts off the end of reading by the time since begin, or if that is zero, since the shutdown began.
func (c *conn) drainLater(begin time.Time) {
	since := c.server.closingSince.Load()
	if since == nil {
		return
	}
	if begin.IsZero() {
		begin = *since
	}
	c.waited += time.Since(begin)
	c.server.mu.Lock() // drain has set its own deadline
	defer c.server.mu.Unlock()
	_ = c.net.SetReadDeadline(since.Add(drainTime + c.waited))
}

// linger ends the connection. In a shutdown it waits as long as the client goes on, because it may have been told to
// end in the middle of a long pipeline.
func (c *conn) linger() {
	if c.server.closingSince.Load() == nil {
		linger(c.net, lingerTime, lingerTime, lingerTime)
		return
	}
	first := lingerTime
	if c.waited > lingerTime/10 {
		first = lingerOn
	}
	linger(c.net, first, lingerOn, lingerMost)
}

// linger ends a connection whose client may still be sending. To close it at once would make the operating system
// throw away the last replies, if there was input left that nobody read. It waits for the client to send or to end for the
// time of first, each time that it has sent for that of next, and most in all.
func linger(nc net.Conn, first, next, most time.Duration) {
	defer func() { _ = nc.Close() }()
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	end := time.Now().Add(most)
	deadline, scrap := time.Now().Add(first), make([]byte, leastInput)
	for {
		_ = nc.SetReadDeadline(deadline)
		if _, err := nc.Read(scrap); err != nil {
			return
		}
		if deadline = time.Now().Add(next); deadline.After(end) {
			deadline = end
		}
	}
}
