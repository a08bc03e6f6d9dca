package algorithm

import "slices"

// Concurrent admits a unit if fewer than Count are in flight. Each is in flight until it is released, with a [Cancel] of its End, or
// its lease of Period is over because who held it has died. It is [SlidingLog] with units that are given back, and its
// RetryAfter is when the oldest lease ends: a release may make room sooner.
//
//   - Bound: q in flight, of those that are released or renewed within their lease; q admitted in any lease without a release.
//   - Reaction: q units.
//   - State: two words for each instant at which units in flight were admitted: up to 2q. Count is at most [MaxLogCount].
//   - Use: where the work is what must be bounded, not how often it begins: uploads, reports, connections to a database.
//   - Source: C. Gray and D. Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency", 1989.
const Concurrent Algorithm = "concurrent"

// concurrent is a log of leases, each of which can be given back by its end. A lease taken under
// a limit of a different length keeps its end. A new lease never ends before the others.
//
// State: pairs of (end of the lease less the width, units), earliest first.
type concurrent struct{ slidingLog }

func newConcurrent(l Limit, tick int64) (concurrent, error) {
	log, err := newSlidingLog(l, tick)
	return concurrent{log}, err
}

// renew carries out a Renew.
func (p *Program) renew(state []int64, op Op, now int64) ([]int64, Decision) {
	if op.Cost > 0 && op.Cost <= p.capacity {
		state, _ = p.cancel(state, op.Cost, op.End, now)
	}
	return p.take(state, op.Cost, now)
}

// renew carries out a Renew of p; of a key in debt, of the record's limit. Another limit than the record's leaves a lease
// that it does not renew.
func (o *opened) renew(p *Program, op Op, now int64) (r Result) {
	switch {
	case o.Owed > 0 || o.p.is(p):
		o.state, r = o.p.Apply(o.state, op, now)
	case !p.leases():
		r.Decision = o.peek(p, now)
	default:
		next := *o
		next.state = slices.Clone(o.state)
		if op.Cost > 0 && op.Cost <= p.capacity && o.p.leases() {
			next.state, _ = o.p.cancel(next.state, op.Cost, op.End, now)
		}
		if r = next.take(p, Op{Cost: op.Cost}, now); r.Allowed {
			*o = next
		}
	}
	if o.Owed > 0 {
		o.pay(now)
		left := o.peek(p, now)
		if !r.Allowed {
			r = o.refuse(p, op, now)
			r.Remaining = left.Remaining
		} else {
			r.Decision = left
		}
	}
	return r
}

// leases reports whether the limit has leases.
func (p *Program) leases() bool {
	_, ok := p.machine.(concurrent)
	return ok
}

// convert keeps the ends of leases, by which their holders find them, also where the leases of this limit are shorter.
func (m concurrent) convert(u usage, now int64) []int64 {
	old, ok := u.from.(concurrent)
	if !ok {
		return []int64{now, u.units}
	}
	state := slices.Clone(old.live(u.state, now))
	for i := 0; i < len(state); i += 2 {
		state[i] += old.width - m.width
	}
	return state
}

// endsWithin reports whether the last lease ends within a span from now.
func (m concurrent) endsWithin(state []int64, span, now int64) bool {
	return len(state) == 0 || state[len(state)-2]+m.width <= now+span
}

// limitLease forgets the length of the longest lease when none ends later than a new one.
func (o *opened) limitLease(now int64) {
	if m, ok := o.p.machine.(concurrent); !ok || m.endsWithin(o.state, m.width, now) {
		o.Lease = 0
	}
}
