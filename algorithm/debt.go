package algorithm

import (
	"math"
	"slices"
)

// plus adds units, at most as many as there are.
func plus(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// maxOwed is how many capacities a key can owe. What is beyond that is forgiven, and what could not be paid within 73 years.
const maxOwed = 1024

// owe charges units that were used, as far as there is room for them. The rest is owed.
func (o *opened) owe(units, now int64) {
	if o.Owed == 0 {
		_, d := o.p.machine.take(o.state, 0, now)
		if part := min(units, d.Remaining); part > 0 {
			o.state, _ = o.p.machine.take(o.state, part, now)
			units -= part
		}
		o.Since = now
	}
	o.Owed = plus(o.Owed, units)
	o.forgive(now)
}

// Owe returns the account with a debt of so many units more under p, if it has no limit yet. The
// next operation pays the debt, as far as there is room from now on. A late Commit does the same at
// once, but may need more memory for the state.
func (a Account) Owe(p *Program, units, now int64) Account {
	var x Extra
	if a.Extra != nil {
		x = *a.Extra
	}
	if a.Program != nil {
		p = a.Program
	}
	x.Owed, x.Since = min(plus(x.Owed, units), p.mostOwed()), max(x.Since, now)
	return of(p, a.State, x)
}

func (p *Program) mostOwed() int64 {
	if p.capacity > math.MaxInt64/maxOwed {
		return math.MaxInt64
	}
	return maxOwed * p.capacity
}

// forgive leaves what can be paid.
func (o *opened) forgive(now int64) {
	o.Owed = min(o.Owed, o.p.mostOwed())
	_, left, _ := o.p.repay(slices.Clone(o.state), o.Owed, max(o.Since, now), now+maxSpan/o.p.tick)
	o.Owed -= left
}

// pay takes what is owed as far as there was room for it up to now: each time for a whole capacity, or all that is left. So it does not
// matter how often it is looked for room.
func (o *opened) pay(now int64) {
	if o.Owed == 0 {
		return
	}
	o.state, o.Owed, o.Since = o.p.repay(o.state, o.Owed, o.Since, now)
	if o.Owed == 0 {
		o.Since = 0
	}
}

// repay takes what is owed, from since on up to an end, each time that there is room for a whole capacity or all of it. It returns what is
// still owed, and the time: that at which all was paid, or the end.
func (p *Program) repay(state []int64, owed, since, end int64) (_ []int64, left, at int64) {
	m := p.lenient()
	at = since
	for owed > 0 {
		lump := min(owed, p.capacity)
		var d Decision
		if state, d = m.take(state, lump, at); d.Allowed {
			owed -= lump
			continue
		}
		wait := max(1, int64(d.RetryAfter))
		if at >= end || wait > end-at {
			return state, owed, max(at, end)
		}
		at += wait
	}
	return state, 0, at
}

// refuse is the decision on an operation of p on a key in debt: nothing remains, and a request waits until all is paid. After a
// clock stepped back by years that may be never.
func (o *opened) refuse(p *Program, op Op, now int64) (r Result) {
	paid := opened{p: o.p}
	state, owed, at := o.p.repay(slices.Clone(o.state), o.Owed, max(o.Since, now), now+maxSpan/o.p.tick)
	paid.state = state
	wait := p.duration(at - now)
	r.Limit, r.ResetAfter = p.capacity, wait+p.duration(o.p.left(state, at))
	cost := op.Cost
	if op.Kind == TakeUpTo {
		cost = min(cost, 1)
	}
	switch {
	case cost == 0 && op.Kind != Reserve:
		r.Allowed = true
	case cost > p.capacity || owed > 0:
		r.RetryAfter = Never
	default:
		r.RetryAfter = wait + p.duration(int64(paid.wait(p, cost, at)))
	}
	return r
}

// lenient is the program's machine where a denial counts for nothing.
func (p *Program) lenient() machine {
	if m, ok := p.machine.(exponential); ok {
		m.strict = false
		return m
	}
	return p.machine
}
