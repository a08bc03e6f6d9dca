package resp

import (
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
)

// Stats are counts since the server was made.
type Stats struct {
	Connections int64 // open now
	Accepted    int64 // connections
	Refused     int64 // connections beyond MaxConnections or MaxPerAddress
	Cut         int64 // connections ended by the server for a reason
	Reasons     guard.Counts
	Counts
}

// Counts are counts of commands.
type Counts struct {
	Commands int64
	Allowed  int64 // requests to take units
	Denied   int64
	Errors   int64 // error replies
	// Undecided counts the commands on which the store could not decide: those answered with an error for it, and checks on which the policies said what happens then.
	Undecided int64
	// FailedOpen and Local count those of them that were allowed without a decision, and that were
	// decided by local limits.
	FailedOpen, Local int64
}

func (c *Counts) add(d Counts) {
	c.Commands += d.Commands
	c.Allowed += d.Allowed
	c.Denied += d.Denied
	c.Errors += d.Errors
	c.Undecided += d.Undecided
	c.FailedOpen += d.FailedOpen
	c.Local += d.Local
}

// Decisions returns the durations of decisions, from the end of the read that completed a command.
// Commands that were read together have the duration of all. The durations go on to be counted.
func (s *Server) Decisions() *latency.Decisions { return &s.decisions }

// Stats returns the counts. What is being carried out may not be in them yet.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.past
	stats.Connections = int64(len(s.conns))
	stats.Reasons = s.guard.Counts()
	stats.Refused, stats.Cut = stats.Reasons.Refused(), stats.Reasons.Cut()
	for c := range s.conns {
		stats.add(c.published())
	}
	return stats
}

// publish shows what the connection has counted to Stats. Only the connection writes there.
func (c *conn) publish() {
	for i, n := range [...]int64{c.counts.Commands, c.counts.Allowed, c.counts.Denied, c.counts.Errors, c.counts.Undecided, c.counts.FailedOpen, c.counts.Local} {
		if c.shown[i].Load() != n {
			c.shown[i].Store(n)
		}
	}
}

func (c *conn) published() Counts {
	return Counts{c.shown[0].Load(), c.shown[1].Load(), c.shown[2].Load(), c.shown[3].Load(), c.shown[4].Load(), c.shown[5].Load(), c.shown[6].Load()}
}
