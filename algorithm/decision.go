package algorithm

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that can never pass, because it costs more than the limit's capacity.
const Never time.Duration = math.MaxInt64

// A Decision is the answer to one request. A denial is a Decision too; an error means that none could be made.
type Decision struct {
	// Allowed says whether the request may pass. A denied request has cost nothing.
	Allowed bool
	// Failed reports that the store failed, so that the decision was made without it. The other
	// fields are then guesses, unless Local is set.
	Failed bool
	// Local reports that the limit was enforced in the memory of this process alone, because the
	// store failed. Failed is then set too.
	Local bool
	// Limit is the limit's capacity: the most units that a fresh key admits at one instant.
	Limit int64
	// Remaining is the largest cost that would be admitted at this same instant, after this request.
	Remaining int64
	// RetryAfter is 0 when allowed, else the smallest wait after which the same request passes if no other
	// comes before it, or Never. Fractions of a nanosecond are rounded up.
	RetryAfter time.Duration
	// ResetAfter is the time until the key can't be told from one never seen, if no request comes. Rounded up.
	ResetAfter time.Duration
	// Delay is how long an admitted request must wait for its turn. Only leaky-queue has turns.
	Delay time.Duration
}

// Together is the decision on a request that each of these must pass: allowed if all allow, with the least Remaining and its Limit,
// and the greatest RetryAfter, ResetAfter and Delay. Nothing is delayed that is denied. It is Failed and Local if one of them is. Of no decisions it is allowed.
func Together(each []Decision) Decision {
	all := Decision{Allowed: true}
	for i, d := range each {
		if i == 0 || d.Remaining < all.Remaining {
			all.Limit, all.Remaining = d.Limit, d.Remaining
		}
		all.Allowed = all.Allowed && d.Allowed
		all.Failed, all.Local = all.Failed || d.Failed, all.Local || d.Local
		all.RetryAfter = max(all.RetryAfter, d.RetryAfter)
		all.ResetAfter = max(all.ResetAfter, d.ResetAfter)
		all.Delay = max(all.Delay, d.Delay)
	}
	if !all.Allowed {
		all.Delay = 0
	}
	return all
}

// A Kind of operation on a key's state.
type Kind uint8

const (
	// Take admits the whole cost, or nothing. Cost 0 is a peek: allowed, and it changes nothing.
	Take Kind = iota
	// TakeUpTo admits as much of the cost as there is room for, and is denied when there is none.
	TakeUpTo
	// Refund gives back up to the cost, at most what was used.
	Refund
	// Reset forgets the key.
	Reset
	// Cancel gives back the cost of a Take after which the key would have been fresh at End, where the algorithm knows
	// which units those are, and is else a Refund. Limit.Outstanding says how many may be given back. Under leaky-queue it
	// does nothing if something was taken since: two requests would leave at one time.
	Cancel
	// Renew takes the cost anew, for another Period, in place of what was taken with the same End. It is of concurrent limits. If the old lease
	// is over it is a Take. For other algorithms it is a peek.
	Renew
	// Reserve is a Take whose units can be settled, by its ID, within its Life. Otherwise they
	// are given back when that is over, as by a Cancel. A second Reserve of a live ID is a renewal:
	// it is granted, takes nothing, and the reservation expires a Life from now, or at its old
	// expiry if later. It is of an [Account].
	Reserve
	// Commit settles a Reserve at its real cost: Cost units. Units beyond the reservation are
	// taken; units without room become debt, which is paid before new takes. Cost 0 gives all back.
	// Without a reservation of the ID, settled or expired, the Commit is denied and changes
	// nothing; if Late is set, Cost is charged all the same. It is of an [Account].
	Commit
)

// An Op is an operation, as plain data. Its cost is not negative.
type Op struct {
	Kind Kind
	// of a Commit: without a reservation, the whole cost is charged, with debt where there is no
	// room
	Late bool
	Cost int64
	End  int64 // of a Cancel or Renew: the time of the Take and its ResetAfter, in ticks since the Unix epoch
	ID   int64 // of a Reserve or Commit: the reservation's, chosen at random by who reserves
	Life int64 // of a Reserve: how long it can be settled, in ticks, more than 0
}

// A Result is what an operation did.
type Result struct {
	Decision
	// Granted is the number of units taken: the cost of a request that was allowed, or what TakeUpTo found.
	// Of a Cancel it is the units given back, of a Commit what it cost.
	Granted int64
}

// A Verdict is a Result in four words, so that it crosses the seam between a limiter and its store in registers.
type Verdict struct {
	Granted   int64         // units taken, or −1 if denied
	Remaining int64         // as in Decision
	Wait      time.Duration // RetryAfter if denied, Delay if not
	Reset     time.Duration // ResetAfter
}

// Verdict returns r in four words, without Decision.Limit.
func (r Result) Verdict() Verdict {
	v := Verdict{Granted: r.Granted, Remaining: r.Remaining, Wait: r.Delay, Reset: r.ResetAfter}
	if !r.Allowed {
		v.Granted, v.Wait = -1, r.RetryAfter
	}
	return v
}

// Decision returns what the verdict says about a limit of this capacity.
func (v Verdict) Decision(capacity int64) (d Decision) {
	v.Read(&d, capacity)
	return d
}

// Read sets d, which must be zero, to what the verdict says about a limit of this capacity. It is there for speed: it
// is inlined, and spares copies of d.
func (v Verdict) Read(d *Decision, capacity int64) {
	d.Limit, d.Remaining, d.ResetAfter = capacity, v.Remaining, v.Reset
	if v.Granted < 0 {
		d.RetryAfter = v.Wait
		return
	}
	d.Allowed, d.Delay = true, v.Wait
}
