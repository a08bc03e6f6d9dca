package resp

import (
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

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
