package operation

import (
	"sync/atomic"

	"github.com/weirlimit/weir/internal/server/guard"
)

// Counts are counts of calls.
type Counts struct {
	// Requests are commands, or requests of HTTP on any path.
	Requests int64
	// Allowed and Denied are takes.
	Allowed, Denied int64
	Errors          int64 // error replies
	// Undecided counts the calls on which the store could not decide: those with an error for it, and
	// those that were decided without it. FailedOpen and Local are those of them that were allowed
	// without a decision, and that were decided by local limits.
	Undecided, FailedOpen, Local int64
}

// counters is the number of counts.
const counters = 7

// Each returns the counts, in the order of the fields.
func (c *Counts) Each() [counters]*int64 {
	return [...]*int64{&c.Requests, &c.Allowed, &c.Denied, &c.Errors, &c.Undecided, &c.FailedOpen, &c.Local}
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	from := o.Each()
	for i, n := range c.Each() {
		*n += *from[i]
	}
}

// Decide counts a decision.
func (c *Counts) Decide(allowed bool) {
	if allowed {
		c.Allowed++
	} else {
		c.Denied++
	}
}

// Counters are Counts that many goroutines may read and change at once. The zero value has none.
type Counters [counters]atomic.Int64

// Add adds counts.
func (c *Counters) Add(o Counts) {
	for i, n := range o.Each() {
		if *n != 0 {
			c[i].Add(*n)
		}
	}
}

// Set sets the counts, of which only this goroutine changes any.
func (c *Counters) Set(o *Counts) {
	for i, n := range o.Each() {
		if c[i].Load() != *n {
			c[i].Store(*n)
		}
	}
}

// Counts returns the counts. They are read one after another, not at one instant.
func (c *Counters) Counts() (counts Counts) {
	for i, n := range counts.Each() {
		*n = c[i].Load()
	}
	return counts
}

// Stats are the counts of a server since it was made.
type Stats struct {
	Connections int64 // open now
	Accepted    int64 // connections
	// Refused and Cut are connections beyond a bound, and connections that the server ended for a
	// reason. Reasons are both by reason.
	Refused, Cut int64
	Reasons      guard.Counts
	Counts
}
