package admission

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/policy"
)

// An Outcome is the treatment of a request.
type Outcome uint8

const (
	// Admitted requests are served.
	Admitted Outcome = iota
	// Skipped requests are served, without a decision.
	Skipped
	// Denied requests may pass later, after Decision.RetryAfter. If concurrent limits alone denied,
	// that is at most a second: a place may be free at any time.
	Denied
	// Excessive requests cost more than a limit's capacity, and never pass.
	Excessive
	// Forbidden requests are those of a client whose plan is deny.
	Forbidden
	// Undecided requests are refused because the store could not decide. Decision.RetryAfter is a guess.
	Undecided
	// Invalid requests state an invalid cost, or exceed a bound of the policies.
	Invalid
	// Gone requests are those whose context has ended: nobody waits for the answer.
	Gone
)

// Pass reports whether the request is to be served.
func (o Outcome) Pass() bool { return o <= Skipped }

// String returns the outcome's name, in lower case.
func (o Outcome) String() string {
	all := [...]string{"admitted", "skipped", "denied", "excessive", "forbidden", "undecided", "invalid", "gone"}
	if int(o) >= len(all) {
		return "unknown"
	}
	return all[o]
}

// Held reports whether the request holds anything: a lease, an estimate of its cost, or a slot. If
// not, Finish and Await do nothing, and need not be called.
func (a *Admission) Held() bool { return a.held != nil }

// conclude sets the outcome of a request that was denied, or with an error. decided reports whether
// there is a decision, in place of the store that failed.
func (g *Gate) conclude(r *http.Request, a *Admission, decided bool) {
	ended := r.Context().Err()
	switch {
	case a.Err == nil:
	case !decided && isInvalid(a.Err):
		a.Outcome, a.bound = Invalid, nil
		return
	case ended != nil:
		if a.held != nil {
			a.held.giveBack() //nolint:contextcheck // it is done although the context has ended
		}
		a.Outcome, a.Err, a.held, a.bound = Gone, ended, nil, nil
		return
	case !decided:
		g.warn(undecided, "no decision could be made", a.Err)
		a.Outcome, a.Decision, a.bound = Undecided, weir.Decision{RetryAfter: decide.RetryAfterFailure}, nil
		return
	default:
		g.warn(undecided, "the store failed, and requests are decided without it", a.Err)
	}
	if !a.Decision.Allowed {
		a.refuse()
	}
}

func isInvalid(err error) bool {
	_, cost := errors.AsType[*weir.CostError](err)
	_, request := errors.AsType[*policy.RequestError](err)
	return cost || request
}

// refuse sets the outcome of a request that was denied. A denial by a limit takes precedence over one
// because the store failed.
func (a *Admission) refuse() {
	if a.bound != nil {
		a.Outcome = denial(&a.Decision, a.bound.Limit.Algorithm)
		return
	}
	a.Outcome = Undecided
	var longest time.Duration
	for i := range a.each {
		d := &a.each[i]
		switch {
		case !denies(d):
			continue
		case d.Failed && !d.Local:
		case d.Limit == weir.Limit{}:
			a.Outcome = Forbidden
			return
		default:
			if o := denial(&d.Decision, d.Limit.Algorithm); o == Excessive || a.Outcome == Undecided {
				a.Outcome = o
			}
		}
		longest = max(longest, d.RetryAfter)
	}
	if a.Outcome == Denied {
		a.Decision.RetryAfter = longest
	}
}

// retryPlace is the longest RetryAfter of a concurrent limit. Places are given back at any time; the
// end of the oldest lease is no bound, because leases are renewed for as long as requests take.
const retryPlace = time.Second

// denial returns the outcome of a request that a limit denied, and bounds the RetryAfter of a
// concurrent limit.
func denial(d *weir.Decision, algorithm weir.Algorithm) Outcome {
	if d.RetryAfter == weir.Never {
		return Excessive
	}
	if algorithm == weir.Concurrent {
		d.RetryAfter = min(d.RetryAfter, retryPlace)
	}
	return Denied
}
