package httpapi

import "sync/atomic"

// Stats says what a server has done since it was made.
type Stats struct {
	// Connections is the number of connections open now; Accepted and Refused are those that ever came and were
	// served, or answered 503 because there were too many.
	Connections, Accepted, Refused int64
	// Requests counts the requests answered, on any path; Allowed and Denied count the takes decided.
	Requests, Allowed, Denied int64
	// Errors counts the requests that were answered with a problem.
	Errors int64
	// Undecided counts the requests on which the store could not decide: those answered with a problem for it, and checks on which the policies said what
	// happens then.
	Undecided int64
}

type counts struct {
	connections, accepted, refused    atomic.Int64
	requests, allowed, denied, errors atomic.Int64
	undecided                         atomic.Int64
}

// Stats returns the counts so far. They are read one after another, not at one instant.
func (s *Server) Stats() Stats {
	c := &s.counts
	return Stats{
		Connections: c.connections.Load(),
		Accepted:    c.accepted.Load(),
		Refused:     c.refused.Load(),
		Requests:    c.requests.Load(),
		Allowed:     c.allowed.Load(),
		Denied:      c.denied.Load(),
		Errors:      c.errors.Load(),
		Undecided:   c.undecided.Load(),
	}
}

func (c *counts) verdict(allowed bool) {
	if allowed {
		c.allowed.Add(1)
	} else {
		c.denied.Add(1)
	}
}
