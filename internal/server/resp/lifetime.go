package resp

import (
	"context"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
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
	go s.options.Panics.Safe("resp: shutdown", func() {
		defer close(done)
		s.done.Wait()
	})()
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

// linger ends the connection. In a shutdown it waits as long as the client goes on, because it may have been told to
// end in the middle of a long pipeline.
func (c *conn) linger() {
	if c.server.closingSince.Load() == nil {
		guard.Linger(c.net, lingerTime, lingerTime, lingerTime)
		return
	}
	first := lingerTime
	if c.waited > lingerTime/10 {
		first = lingerOn
	}
	guard.Linger(c.net, first, lingerOn, lingerMost)
}

// shrinkTime is how long a connection is idle before it gives its buffers back.
const shrinkTime = 30 * time.Second

// sweep cuts clients with unread replies or unfinished commands, and idle clients. A single
// goroutine over the connections' counters spares each command the setting of a deadline.
func (s *Server) sweep(stop <-chan struct{}) {
	shortest := min(s.options.WriteTimeout, s.options.CommandTimeout)
	if s.options.Users != nil {
		shortest = min(shortest, s.options.AuthTimeout)
	}
	if idle := s.options.IdleTimeout; idle > 0 {
		shortest = min(shortest, idle)
	}
	ticker := time.NewTicker(max(shortest/2, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			s.options.Panics.Safe("resp: sweep", func() {
				s.sweepOnce(now)
				s.collect(now)
			})()
		}
	}
}

func (s *Server) sweepOnce(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if why, overdue := s.overdue(c, now); overdue {
			s.guard.Count(why, c.net.RemoteAddr().String())
			_ = c.net.Close()
		}
	}
}

// overdue reports whether a connection has been in one state for too long, and why. It is called
// under the lock.
func (s *Server) overdue(c *conn, now time.Time) (why guard.Reason, cut bool) {
	if unfinished := c.unfinished.Load(); unfinished != c.seenUnfinished {
		c.seenUnfinished, c.unfinishedAt = unfinished, now
	}
	rounds, writes := c.rounds.Load(), c.writes.Load()
	if state := (activity{rounds, writes}); state != c.seen {
		c.seen, c.seenAt = state, now
	}
	idle, reads := now.Sub(c.seenAt), rounds%2 == 1
	switch {
	case writes%2 == 1:
		return guard.Unread, idle >= s.options.WriteTimeout
	case !reads: // the connection waits for the store
		return 0, false
	case c.overdueLogin(now):
		return guard.Login, true
	case c.seenUnfinished != 0:
		return guard.Unfinished, now.Sub(c.unfinishedAt) >= s.options.CommandTimeout
	case s.options.IdleTimeout > 0 && idle >= s.options.IdleTimeout:
		return guard.Idle, true
	case idle >= shrinkTime && c.large.Load() && !s.closing:
		c.awoken.Store(true)
		_ = c.net.SetReadDeadline(now)
	}
	return 0, false
}

// activity is what changes when a connection does something.
type activity struct{ rounds, writes uint64 }

const (
	// collectSize is how many bytes of long buffers are freed before the memory for them is
	// returned to the operating system, and collectTime how often that happens at most.
	collectSize = 32 << 20
	collectTime = time.Minute
)

// collect returns the memory of freed long buffers. A quiet server would otherwise keep the memory
// for minutes, because its allocations start no collection.
func (s *Server) collect(now time.Time) {
	s.mu.Lock()
	due := s.freed.Load() >= collectSize && now.Sub(s.collected) >= collectTime
	if due {
		s.freed.Store(0)
		s.collected = now
	}
	s.mu.Unlock()
	if due {
		s.freeMemory()
	}
}

// unfinishedID returns the number of a transaction with memory beyond the usual, or the number of a
// command that has arrived in part, or 0. Input byte by byte does not change the number.
func (c *conn) unfinishedID() uint64 {
	const transaction = 1 << 63
	switch {
	case c.pending.open && cap(c.pending.queue) > usualInput:
		return transaction | uint64(c.pending.began+1)
	case c.end > c.start:
		return uint64(c.counts.Requests + 1)
	}
	return 0
}

// shrink gives back the buffers of an idle connection, and resets the deadline of its read.
func (c *conn) shrink() {
	if c.start == c.end {
		c.resize(idleInput)
		c.args, c.out.buf, c.queue, c.requests, c.decisions, c.limit = nil, nil, nil, nil, nil, nil
		c.large.Store(false)
	}
	c.server.mu.Lock() // drain sets a deadline of its own
	defer c.server.mu.Unlock()
	var deadline time.Time
	if since := c.server.closingSince.Load(); since != nil {
		deadline = since.Add(drainTime + c.waited)
	}
	_ = c.net.SetReadDeadline(deadline)
}
