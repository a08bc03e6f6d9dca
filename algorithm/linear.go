package algorithm

import (
	"math"
	"math/bits"
	"time"
)

// The linear family is one kernel. Each of its limits is: an emission interval T = Period/Count, and a depth
// D = capacity·T. Its state is the theoretical arrival time (TAT), the time until which the units taken so
// far have paid. A request of cost c passes when max(TAT, now) + c·T − now ≤ D, and then TAT = max(TAT, now) + c·T.
//
// T is rarely a whole number of ticks, so it is kept as a fraction step/unit, and TAT as whole ticks and a
// remainder in 1/unit ticks: exact for ever. Where the denominator is 1 the remainder is not stored.

// linear is the kernel for any fraction. Package memory uses [Word], the same over one int64, where it can.
type linear struct {
	step, unit int64 // T = step/unit ticks, in lowest terms
	depth      instant
	queue      bool // admitted requests wait for their turn
}

// An instant is a time, or a span, of ticks + rem/unit with 0 ≤ rem < unit.
type instant struct{ ticks, rem int64 }

func newLinear(l Limit, tick int64) (linear, error) {
	step, unit, err := interval(l, tick)
	if err != nil {
		return linear{}, err
	}
	m := linear{step: step, unit: unit, queue: l.Algorithm == LeakyQueue}
	hi, lo := bits.Mul64(uint64(l.Capacity()), uint64(step))
	if hi >= uint64(unit) {
		return linear{}, refuseDepth(l)
	}
	ticks, rem := bits.Div64(hi, lo, uint64(unit))
	if ticks >= uint64(maxSpan/tick) {
		return linear{}, refuseDepth(l)
	}
	m.depth = instant{int64(ticks), int64(rem)}
	return m, nil
}

// interval returns Period/Count in ticks, as a fraction in lowest terms.
func interval(l Limit, tick int64) (step, unit int64, err error) {
	// Period/(Count·tick) with the common factors out first, so that the products are as small as they can be.
	p, n := reduce(int64(l.Period), l.Count)
	p, t := reduce(p, tick)
	hi, lo := bits.Mul64(uint64(n), uint64(t))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, 0, refuse("count", l.Count, "less per %v in this store", l.Period)
	}
	return p, int64(lo), nil
}

func reduce(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

// refuseDepth refuses a limit that takes too long to refill: for its burst, or where no burst is short enough, its period.
func refuseDepth(l Limit) error {
	hi, lo := bits.Mul64(maxSpan-1, uint64(l.Count))
	most := uint64(math.MaxInt64)
	if hi < uint64(l.Period) {
		most, _ = bits.Div64(hi, lo, uint64(l.Period))
	}
	const why = "because it takes 73 years to refill"
	switch {
	case l.Algorithm == LeakyQueue && most > 1:
		return refuse("queue", l.Queue, "1 to %d at %d per %v, %s", most-1, l.Count, l.Period, why)
	case most < 1 || l.Algorithm == Cooldown || l.Algorithm == MinInterval || l.Algorithm == LeakyQueue || l.Algorithm == Hybrid:
		return refuse("period", l.Period, "less than %v for a count of %d, %s", time.Duration(maxSpan), l.Count, why)
	}
	return refuse("burst", l.Burst, "1 to %d at %d per %v, %s", most, l.Count, l.Period, why)
}

func (m linear) take(state []int64, cost, now int64) ([]int64, Decision) {
	debt, charge := m.debt(state, now), m.times(cost)
	most := m.minus(m.depth, charge) // the largest debt that leaves room for the charge
	d := Decision{Allowed: cost == 0 || !m.less(most, debt)}
	switch {
	case !d.Allowed:
		d.RetryAfter = ceil(m.minus(debt, most))
	case cost > 0:
		if m.queue {
			d.Delay = ceil(debt)
		}
		debt = m.plus(debt, charge)
		state = m.store(state, instant{now + debt.ticks, debt.rem})
	}
	if m.less(debt, m.depth) {
		d.Remaining = m.units(m.minus(m.depth, debt))
	}
	d.ResetAfter = ceil(debt)
	return state, d
}

func (m linear) refund(state []int64, cost, now int64) []int64 {
	return m.giveBack(state, m.debt(state, now), m.times(min(cost, m.units(m.depth))), now)
}

// giveBack leaves the time, now, of a key whose debt it gives back as a whole: a time that steps back from there finds the debt that it
// had then. A key that has no debt stays as it is, for the same reason.
func (m linear) giveBack(state []int64, debt, back instant, now int64) []int64 {
	if debt == (instant{}) {
		return state
	}
	if m.less(debt, back) {
		return m.store(state, instant{ticks: now})
	}
	left := m.minus(debt, back)
	return m.store(state, instant{now + left.ticks, left.rem})
}

func (m linear) heal(state []int64, now int64) bool {
	if !m.less(m.depth, m.debt(state, now)) {
		return false
	}
	m.store(state, instant{now + m.depth.ticks, m.depth.rem})
	return true
}

func (m linear) convert(u usage, now int64) []int64 {
	debt := m.times(u.units)
	if old, ok := u.from.(linear); ok {
		if exact := old.debt(u.state, now); old.less(exact, old.depth) {
			exact = m.from(old, exact)
			if m.less(exact, debt) {
				debt = exact
			}
		}
	}
	return m.store(nil, instant{now + debt.ticks, debt.rem})
}

// from returns the time that as many units take as another limit has in a span of at most its depth. It rounds up to 1/unit ticks.
func (m linear) from(old linear, span instant) instant {
	if old.step == m.step && old.unit == m.unit {
		return span
	}
	whole := old.units(span)
	part := old.minus(span, old.times(whole)) // less than step/unit
	hi, lo := bits.Mul64(uint64(part.ticks*old.unit+part.rem), uint64(m.step))
	rem, rest := bits.Div64(hi, lo, uint64(old.step))
	if rest > 0 {
		rem++
	}
	part = instant{int64(rem) / m.unit, int64(rem) % m.unit}
	return m.plus(m.times(min(whole, m.units(m.depth))), part)
}

// debt is what a key has yet to pay at now: max(TAT − now, 0).
func (m linear) debt(state []int64, now int64) instant {
	if len(state) == 0 || state[0] < now {
		return instant{}
	}
	debt := instant{ticks: state[0] - now}
	if len(state) > 1 {
		debt.rem = state[1]
	}
	return debt
}

func (m linear) store(state []int64, tat instant) []int64 {
	if m.unit == 1 {
		return append(state[:0], tat.ticks)
	}
	return append(state[:0], tat.ticks, tat.rem)
}

// times returns cost·T, for a cost of at most the capacity.
func (m linear) times(cost int64) instant {
	hi, lo := bits.Mul64(uint64(cost), uint64(m.step))
	ticks, rem := bits.Div64(hi, lo, uint64(m.unit))
	return instant{int64(ticks), int64(rem)}
}

// units returns how many whole T fit into a span of at most the depth.
func (m linear) units(span instant) int64 {
	hi, lo := bits.Mul64(uint64(span.ticks), uint64(m.unit))
	lo, carry := bits.Add64(lo, uint64(span.rem), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(m.step))
	return int64(n)
}

func (m linear) plus(a, b instant) instant {
	ticks, rem := a.ticks+b.ticks, uint64(a.rem)+uint64(b.rem)
	if rem >= uint64(m.unit) {
		ticks, rem = ticks+1, rem-uint64(m.unit)
	}
	return instant{ticks, int64(rem)}
}

func (m linear) minus(a, b instant) instant {
	diff := instant{a.ticks - b.ticks, a.rem - b.rem}
	if diff.rem < 0 {
		diff.ticks, diff.rem = diff.ticks-1, diff.rem+m.unit
	}
	return diff
}

func (m linear) less(a, b instant) bool {
	return a.ticks < b.ticks || a.ticks == b.ticks && a.rem < b.rem
}

// ceil returns the span in ticks, rounded up.
func ceil(span instant) time.Duration {
	if span.rem > 0 {
		return time.Duration(span.ticks + 1)
	}
	return time.Duration(span.ticks)
}
