package resp

import "time"

// sweep cuts clients that do not read their replies, and idle ones. One goroutine that looks at what connections
// count anyway spares each command the setting of a deadline.
func (s *Server) sweep(stop <-chan struct{}) {
	shortest := s.options.WriteTimeout
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
			s.sweepOnce(now)
		}
	}
}

func (s *Server) sweepOnce(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if s.stuck(c, now) {
			s.past.Cut++
			_ = c.net.Close()
		}
	}
}

// countCut counts a client that was cut because of the replies it had not read.
func (s *Server) countCut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.Cut++
}

// stuck reports whether a connection has been in one state for too long. It is called under the lock.
func (s *Server) stuck(c *conn, now time.Time) bool {
	rounds, writes := c.rounds.Load(), c.writes.Load()
	if state := (activity{rounds, writes}); state != c.seen {
		c.seen, c.seenAt = state, now
		return false
	}
	idle := now.Sub(c.seenAt)
	if writes%2 == 1 {
		return idle >= s.options.WriteTimeout
	}
	return s.options.IdleTimeout > 0 && idle >= s.options.IdleTimeout
}

// activity is what changes when a connection does something.
type activity struct{ rounds, writes uint64 }
