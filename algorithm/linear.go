package algorithm

import (
	"math"
	"math/bits"
	"time"
)

// TokenBucket is a bucket of Burst tokens, which starts full and gains Count per Period, continuously. A request
// takes as many tokens as it costs, or is denied and takes none. It is the default.
//
//   - Bound: b+⌊L/T⌋ in any closed interval; so b+q−1 in a half-open window, b+q in a closed one.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units: twice the quota at twice the limit, hardly more than b at ten times.
//   - State: one word, the time at which the bucket will be full. Two when T isn't a whole number of ticks.
//   - Use: for requests in general. It forgives bursts, makes a busy client's rate even, and costs least.
//   - Source: S. Shenker and J. Wroclawski, "General Characterization Parameters for Integrated Service Network
//     Elements", RFC 2215, 1997.
const TokenBucket Algorithm = "token-bucket"

// GCRA is the generic cell rate algorithm. It keeps a theoretical arrival time: when the next unit would come if all came
// evenly. A unit passes if it is early by at most (Burst−1)·T, and moves that time on by T, counted from now
// if it had passed. It decides as [TokenBucket] does, by the same kernel.
//
//   - Bound: b+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units.
//   - State: one word, the theoretical arrival time. Two when T isn't a whole number of ticks.
//   - Use: as the token bucket, by the name that networks know.
//   - Source: The ATM Forum, "Traffic Management Specification Version 4.0", 1996, and ITU-T Recommendation I.371; for
//     requests: T. Finch, "GCRA: leaky buckets without the buckets", 2024.
const GCRA Algorithm = "gcra"

// LeakyBucket is the leaky bucket as a meter: it holds Burst units and leaks Count per Period, continuously. A
// request pours in what it costs, or is denied if that would not fit. It is [TokenBucket] seen from above: what is in
// the one is missing from the other. It delays nothing; [LeakyQueue] does.
//
//   - Bound: b+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units.
//   - State: one word, the time at which the bucket will be empty. Two when T isn't a whole number of ticks.
//   - Use: as the token bucket, where people think in levels.
//   - Source: J. S. Turner, "New Directions in Communications (or Which Way to the Information Age?)", IEEE
//     Communications Magazine 24(10), 1986.
const LeakyBucket Algorithm = "leaky-bucket"

// LeakyQueue is the leaky bucket as a queue: an admitted request waits for its turn, the Decision's Delay. An idle
// queue lets a request go at once, then one unit each T; up to Queue units wait, first in, first out, and a
// request that finds no room is denied. The capacity is Queue+1: those that wait, and the one that goes.
//
//   - Bound: what is let go: 1+⌊L/T⌋ in any closed interval, so q+1 in a closed window. A request that costs more
//     than 1 goes as one, and the queue then pauses for its cost. What is admitted: b+⌊L/T⌋.
//   - Reaction: ⌊Queue·a/(a−1)⌋+1 units before the first denial, but delays from the second one on.
//   - State: one word, the time at which the queue will be empty. Two when T isn't a whole number of ticks.
//   - Use: to feed something that must not see a burst, when the caller can wait. The longest wait is Queue·T.
//   - Source: A. S. Tanenbaum, "Computer Networks", third edition, 1996, on traffic shaping.
const LeakyQueue Algorithm = "leaky-queue"

// Cooldown keeps a score per key: a point in time that each unit moves on by T, from now if it had passed. A
// request is denied if its score would be more than Period ahead of now. It is [GCRA] with a burst of Count. The
// published version moves a score on from a little before now after a pause, and so lets Count+1 pass at once; this
// one lets Count.
//
//   - Bound: q+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(q−1)·a/(a−1)⌋+1 units.
//   - State: one word, the score. Two when T isn't a whole number of ticks.
//   - Use: for actions of people: attempts to log in, messages, votes.
//   - Source: "Simple Cooldown and Rate Control Algorithm", bravenewmethod.com, 2013.
const Cooldown Algorithm = "cooldown"

// MinInterval admits a unit if the last one admitted lies at least T back. It is [GCRA] with a burst of 1; a
// request that costs more than 1 never passes.
//
//   - Bound: 1+⌊L/T⌋ in any closed interval; so q in a half-open window, q+1 in a closed one.
//   - Reaction: 1 unit.
//   - State: one word, the time of the next admission. Two when T isn't a whole number of ticks.
//   - Use: for jobs and polls of one's own, whose pace is known. Clients whose requests arrive in pairs, as
//     browsers' do, lose every second one.
//   - Source: the ATM Forum's peak cell rate, which is GCRA without tolerance (see [GCRA]), 1996.
const MinInterval Algorithm = "min-interval"

// The linear family is one kernel. Each of its limits is: an emission interval T = Period/Count, and a depth
// D = capacity·T. Its state is the theoretical arrival time (TAT), the time until which the units taken so
// far have paid. A request of cost c passes when max(TAT, now) + c·T − now ≤ D, and then TAT = max(TAT, now) + c·T.
//
// T is rarely a whole number of ticks, so it is kept as a fraction Step/Unit, and TAT as whole ticks and a
// remainder in 1/Unit ticks: exact for ever. Where the denominator is 1 the remainder is not stored.

// linear is the kernel for any fraction. Package memory uses [Word], the same over one int64, where it can.
type linear struct {
	Interval
	depth Span
	queue bool // admitted requests wait for their turn
}

func newBucket(l Limit, capacity, tick int64) (machine, error) { return newLinear(l, capacity, tick) }

func newQueue(l Limit, capacity, tick int64) (machine, error) {
	m, err := newLinear(l, capacity, tick)
	m.queue = true
	return m, err
}

func newLinear(l Limit, capacity, tick int64) (linear, error) {
	i, err := newInterval(l, tick)
	if err != nil {
		return linear{}, err
	}
	hi, lo := bits.Mul64(uint64(capacity), uint64(i.Step))
	if hi >= uint64(i.Unit) {
		return linear{}, refuseDepth(l)
	}
	ticks, rem := bits.Div64(hi, lo, uint64(i.Unit))
	if ticks >= uint64(maxSpan/tick) {
		return linear{}, refuseDepth(l)
	}
	return linear{Interval: i, depth: Span{int64(ticks), int64(rem)}}, nil
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
	debt, charge := m.debt(state, now), m.Times(cost)
	most := m.Minus(m.depth, charge) // the largest debt that leaves room for the charge
	d := Decision{Allowed: cost == 0 || !most.less(debt)}
	switch {
	case !d.Allowed:
		d.RetryAfter = m.Minus(debt, most).ceil()
	case cost > 0:
		if m.queue {
			d.Delay = debt.ceil()
		}
		debt = m.plus(debt, charge)
		state = m.store(state, Span{now + debt.Ticks, debt.Rem})
	}
	if debt.less(m.depth) {
		d.Remaining = m.units(m.Minus(m.depth, debt))
	}
	d.ResetAfter = debt.ceil()
	return state, d
}

func (m linear) refund(state []int64, cost, now int64) []int64 {
	return m.giveBack(state, m.debt(state, now), m.Times(min(cost, m.units(m.depth))), now)
}

// giveBack leaves the time, now, of a key whose debt it gives back as a whole: a time that steps back from there finds the debt that it
// had then. A key that has no debt stays as it is, for the same reason.
func (m linear) giveBack(state []int64, debt, back Span, now int64) []int64 {
	if debt == (Span{}) {
		return state
	}
	if debt.less(back) {
		return m.store(state, Span{Ticks: now})
	}
	left := m.Minus(debt, back)
	return m.store(state, Span{now + left.Ticks, left.Rem})
}

func (m linear) heal(state []int64, now int64) bool {
	if !m.depth.less(m.debt(state, now)) {
		return false
	}
	m.store(state, Span{now + m.depth.Ticks, m.depth.Rem})
	return true
}

func (m linear) convert(u usage, now int64) []int64 {
	debt := m.Times(u.units)
	if old, ok := u.from.(linear); ok {
		if exact := old.debt(u.state, now); exact.less(old.depth) {
			exact = m.from(old, exact)
			if exact.less(debt) {
				debt = exact
			}
		}
	}
	return m.store(nil, Span{now + debt.Ticks, debt.Rem})
}

// from returns the time that as many units take as another limit has in a span of at most its depth. It rounds up to 1/Unit ticks.
func (m linear) from(old linear, span Span) Span {
	if old.Step == m.Step && old.Unit == m.Unit {
		return span
	}
	whole := old.units(span)
	part := old.Minus(span, old.Times(whole)) // less than step/unit
	hi, lo := bits.Mul64(uint64(part.Ticks*old.Unit+part.Rem), uint64(m.Step))
	rem, rest := bits.Div64(hi, lo, uint64(old.Step))
	if rest > 0 {
		rem++
	}
	part = Span{int64(rem) / m.Unit, int64(rem) % m.Unit}
	return m.plus(m.Times(min(whole, m.units(m.depth))), part)
}

// debt is what a key has yet to pay at now: max(TAT − now, 0).
func (m linear) debt(state []int64, now int64) Span {
	if len(state) == 0 || state[0] < now {
		return Span{}
	}
	debt := Span{Ticks: state[0] - now}
	if len(state) > 1 {
		debt.Rem = state[1]
	}
	return debt
}

func (m linear) store(state []int64, tat Span) []int64 {
	if m.Unit == 1 {
		return append(state[:0], tat.Ticks)
	}
	return append(state[:0], tat.Ticks, tat.Rem)
}

func (m linear) valid(state []int64, farthest int64) bool {
	if m.Unit == 1 {
		return len(state) == 1 && within(state[0], farthest)
	}
	return len(state) == 2 && within(state[0], farthest) && 0 <= state[1] && state[1] < m.Unit
}

// cancel gives back what is not paid of the units. end was rounded up, so that where times have fractions up to a tick of
// it is taken off.
func (m linear) cancel(state []int64, cost, end, now int64) ([]int64, int64) {
	debt := m.debt(state, now)
	if debt == (Span{}) || m.queue && now+int64(debt.ceil()) != end {
		return state, 0 // all has come back; or somebody came after, and has a time to leave
	}
	if m.queue {
		return m.refund(state, cost, now), cost
	}
	left := Span{Ticks: end - now}
	if m.Unit > 1 {
		left.Ticks--
	}
	back := m.Times(min(cost, m.units(m.depth)))
	if left.less(back) {
		back = left
	}
	if back.Ticks < 0 {
		return state, 0
	}
	return m.giveBack(state, debt, back, now), cost
}
