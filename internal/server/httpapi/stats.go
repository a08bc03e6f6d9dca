package httpapi

import (
	"sync/atomic"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
)

// Stats says what a server has done since it was made.
type Stats struct {
	// Connections is the number of connections open now; Accepted, Refused and Cut count
	// connections since the start: served, answered 503 because there were too many, and ended by
	// the server for a reason.
	Connections, Accepted, Refused, Cut int64
	// Reasons are Refused and Cut, by reason.
	Reasons guard.Counts
	// Requests counts the requests answered, on any path; Allowed and Denied count the takes decided.
	Requests, Allowed, Denied int64
	// Errors counts the requests that were answered with a problem.
	Errors int64
	// Undecided counts the requests on which the store could not decide: those answered with a problem for it, and checks on which the policies said what
	// happens then.
	Undecided int64
	// FailedOpen and Local count those of them that were allowed without a decision, and that were
	// decided by local limits.
	FailedOpen, Local int64
}

type counts struct {
	requests, allowed, denied, errors atomic.Int64
	undecided, failedOpen, local      atomic.Int64
}

// Decisions returns the durations of decisions, without the time to read the body and to send the
// response. The durations go on to be counted.
func (s *Server) Decisions() *latency.Decisions { return &s.decisions }

// Stats returns the counts so far. They are read one after another, not at one instant.
func (s *Server) Stats() Stats {
	c, reasons := &s.counts, s.connections.guard.Counts()
	return Stats{
		Connections: int64(s.connections.guard.Open()),
		Accepted:    s.connections.accepted.Load(),
		Refused:     reasons.Refused(),
		Cut:         reasons.Cut(),
		Reasons:     reasons,
		Requests:    c.requests.Load(),
		Allowed:     c.allowed.Load(),
		Denied:      c.denied.Load(),
		Errors:      c.errors.Load(),
		Undecided:   c.undecided.Load(),
		FailedOpen:  c.failedOpen.Load(),
		Local:       c.local.Load(),
	}
}

func (c *counts) verdict(allowed bool) {
	if allowed {
		c.allowed.Add(1)
	} else {
		c.denied.Add(1)
	}
}
