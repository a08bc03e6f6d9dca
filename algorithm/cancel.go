package algorithm

import "time"

// Outstanding returns how many of the cost units that were taken with decision d, elapsed ago, a Cancel may give back
// without more being admitted than the limit says. The rest has come back by itself, or, under exponential, can't be told.
// Algorithms whose units come back in parts, or that know which units were taken when, leave the rest to the Cancel.
func (l Limit) Outstanding(cost int64, d Decision, elapsed time.Duration) int64 {
	left := d.ResetAfter - elapsed
	if !d.Allowed || left <= 0 {
		return 0
	}
	l = l.Canonical()
	if outstanding := l.Algorithm.kind().outstanding; outstanding != nil {
		return outstanding(l, cost, d, elapsed)
	}
	return cost
}

// cancel gives back units that were taken when the key would have been fresh at end, and says how many: all, unless a
// part of them has come back by itself.
func (p *Program) cancel(state []int64, cost, end, now int64) (_ []int64, back int64) {
	if m, ok := p.machine.(canceler); ok {
		return m.cancel(state, cost, end, now)
	}
	return p.machine.refund(state, cost, now), cost
}

// A canceler is a machine that knows which of its units were taken when.
type canceler interface {
	cancel(state []int64, cost, end, now int64) (_ []int64, back int64)
}

// cancels reports whether the limit of a record can cancel units that were taken under q. It can't where the state does not have the
// time at which units were taken: they may have come back under the record's limit.
func (p *Program) cancels(q *Program) bool {
	_, ok := p.machine.(canceler)
	return ok || p.is(q) || p.countsAs(q)
}
