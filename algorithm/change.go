package algorithm

import (
	"slices"
	"time"
)

// When the limit of a name changes, these hold, whatever the limits and however often they change:
//
//   - A change gives no fresh budget: what was used stays used.
//   - While limits alternate on a key, no more is admitted at one instant than the largest capacity, and units come back no
//     faster than under the fastest of the limits. Between fixed windows of different grids it is at most the sum of the limits.
//   - A client that keeps asking meanwhile gets the rate of the slowest of the limits, or more: exactly between limits of one
//     algorithm and period, and within the linear family less a tick for each change. Otherwise each change may start the wait of
//     all units anew: of two limits in turn a client gets about half of that rate, in the worst order one unit in each reset time.
//   - Between limits of one algorithm and period, changes to and fro lose no unit and no part of one.
//
// The rule: a record belongs to one limit. A request of another limit is admitted if its cost and the units that are used, under the
// record's own limit and clock, fit its capacity together; then the units become a state of the other limit, and the record is its. A denied
// request waits until enough units have come back under the record's own limit. If they all fit the other limit's capacity, and under its
// clock the wait is shorter, they become a state of the other limit too; otherwise a denial changes nothing. All else, such as a refund or a
// settlement, is done under the record's own limit.

// take carries out a Take or a TakeUpTo of p.
func (o *opened) take(p *Program, op Op, now int64) (r Result) {
	switch {
	case o.Owed > 0: // debt comes first
		return o.refuse(p, op, now)
	case o.p.is(p):
		o.state, r = p.Apply(o.state, op, now)
		return r
	case o.p.countsAs(p):
		o.state, r = p.Apply(o.state, op, now)
		if r.Granted > 0 && p.Check(o.state) == nil {
			o.p = p
		}
		return r
	}
	_, d := o.p.machine.take(o.state, 0, now)
	d.Remaining = max(0, p.capacity-(o.p.capacity-d.Remaining))
	cost := op.Cost
	if op.Kind == TakeUpTo {
		cost = min(cost, max(1, d.Remaining))
	}
	if d.Allowed = cost <= d.Remaining; d.Allowed && cost > 0 {
		o.convert(p, now)
		o.state, r = p.Apply(o.state, Op{Cost: cost}, now)
		return r
	}
	if d.Allowed {
		return Result{Decision: p.inTime(d)}
	}
	d.RetryAfter = o.wait(p, cost, now)
	if cost <= p.capacity && o.p.used(o.state, now) <= p.capacity {
		faster := *o
		faster.state = slices.Clone(o.state)
		faster.convert(p, now)
		if wait := faster.wait(p, cost, now); wait < d.RetryAfter {
			*o = faster
			d.RetryAfter, d.ResetAfter = wait, time.Duration(p.left(o.state, now))
		}
	}
	return Result{Decision: p.inTime(d)}
}

// wait returns how long a request of p waits for units, in ticks, or Never.
func (o *opened) wait(p *Program, cost, now int64) (ticks time.Duration) {
	m := o.p.lenient()
	switch {
	case cost > p.capacity:
		return Never
	case o.p.countsAs(p):
		m = p.lenient()
	default: // as the cost that fits beside the same units
		cost = max(0, o.p.capacity-(p.capacity-cost))
	}
	_, d := m.take(o.state, cost, now)
	return d.RetryAfter
}

// countsAs reports whether a state means the same under both limits, which differ in their counts at most.
func (p *Program) countsAs(q *Program) bool {
	a, b := p.limit, q.limit
	a.Count, a.Strict, a.nanoseconds = b.Count, b.Strict, b.nanoseconds
	return a == b && a.Algorithm.kind().counts
}

// convert makes the record one of p, in which as many units are used, up to the capacity.
func (o *opened) convert(p *Program, now int64) {
	if o.p.countsAs(p) || o.p.is(p) {
		return
	}
	old := *o
	_, d := old.p.machine.take(old.state, 0, now)
	units := min(old.p.used(old.state, now), p.capacity)
	if o.p, o.state = p, nil; units > 0 {
		o.state = p.machine.convert(usage{units, old.p.machine, old.state}, now)
	}
	o.Lease = 0
	if m, ok := old.p.machine.(concurrent); ok && p.leases() {
		o.Lease = max(old.Lease, m.width)
		o.limitLease(now)
	}
	o.Holds = slices.Clone(o.Holds)
	before, end := now+int64(d.ResetAfter), now+p.left(o.state, now)
	for i := range o.Holds {
		h := &o.Holds[i]
		if h.End < before {
			h.End = p.end(old.p, h.End, now)
		} else {
			h.End = end
		}
		h.End = min(h.End, end)
		h.Left = max(0, p.capacity-(old.p.capacity-h.Left))
	}
}

// end returns the End under p of units that were taken under q.
func (p *Program) end(q *Program, end, now int64) int64 {
	m, to := p.machine.(linear)
	old, from := q.machine.(linear)
	if !to || !from || end <= now {
		return end
	}
	span := Span{Ticks: end - now}
	if old.depth.less(span) {
		span = old.depth
	}
	return now + m.from(old, span).Ticks
}

// A usage is the units that are used under a limit, for a limit that takes its place.
type usage struct {
	units int64   // rounded up to whole ones, at least 1, at most the capacity of the limit that takes its place
	from  machine // of the state
	state []int64 // not to be changed
}
