package admission

import (
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// retryPlace is when to come back, at the latest, for a place of a concurrent limit. A place is free as soon as somebody is done, and nobody knows when that is. The end of the oldest lease
// says nothing of it: leases are renewed for as long as requests take.
const retryPlace = time.Second

// askSoon says of limits of concurrency that denied to come back soon, and of all limits together what is then the longest.
func (a *Admission) askSoon() {
	if a.limit != nil {
		if a.under.limit.Algorithm == weir.Concurrent {
			a.Decision.RetryAfter = min(a.Decision.RetryAfter, retryPlace)
		}
		return
	}
	var longest time.Duration
	for i := range a.each {
		d := &a.each[i]
		if d.Role != policy.Enforced || d.Allowed {
			continue
		}
		if d.Limit.Algorithm == weir.Concurrent {
			d.RetryAfter = min(d.RetryAfter, retryPlace)
		}
		longest = max(longest, d.RetryAfter)
	}
	a.Decision.RetryAfter = longest
}
