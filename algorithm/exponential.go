package algorithm

import (
	"math"
	"sort"
	"time"
)

// Exponential measures the rate of a key, in units per Period, as an exponentially weighted moving average, and denies
// what would bring it above Count. After dt, with x = dt/Period, a request of cost c makes the rate r into
// r·e^−x + c·(1−e^−x)/x, or c if that is more. Denied requests don't count, unless Strict: then a client that keeps
// asking too often stays out until it asks less.
//
//   - Bound: q+⌊L/T⌋ in any closed interval.
//   - Reaction: a·q·ln(a/(a−1)) units, rounded down: just above the limit much sooner than a token bucket, 2.6q
//     against 11q at 1.1 times it.
//   - State: two words, the last request's time and the rate.
//   - Use: where the measured rate is worth knowing, or a client should have to slow down, not only wait (strict).
//     It computes in float64, in a fixed order of operations; Count is at most [MaxRateCount].
//   - Source: T. Finch, "exponential rate limiting", dotat.at, 2024, after his ratelimit in the Exim mail server.
const Exponential Algorithm = "exponential"

// exponential measures the rate of a key as an exponentially weighted moving average, in units per period, and
// denies a request that would bring it above the limit.
//
// State: the time of the last update, the rate then (the bits of a float64).
//
// It is the one algorithm that is not of integers. Its products are converted to float64 one by one, so that
// no machine fuses them, and every decision comes from the same few operations in the same order.
type exponential struct {
	limit, period float64
	strict        bool
}

func newExponential(l Limit, tick int64) (exponential, error) {
	period, err := wholeTicks(l, tick)
	if longest := time.Duration(maxSpan / 128); l.Period > longest {
		err = refuse("period", l.Period, "at most %v for %s", longest, l.Algorithm)
	}
	return exponential{limit: float64(l.Count), period: float64(period), strict: l.Strict}, err
}

// at returns the rate after the last update, and the ticks since. A time before that counts as that time.
func (m exponential) at(state []int64, now int64) (rate float64, elapsed int64) {
	if len(state) == 0 {
		return 0, 0
	}
	return math.Float64frombits(uint64(state[1])), max(0, now-state[0])
}

// next returns the rate after a request of this cost, elapsed ticks after the rate was last updated.
func (m exponential) next(rate float64, elapsed int64, cost float64) float64 {
	if elapsed == 0 {
		return rate + cost
	}
	x := float64(elapsed) / m.period
	left, gone := decay(x)
	old := float64(left * rate)
	added := float64(cost * float64(gone/x))
	return max(old+added, cost)
}

// decay returns e^−x and 1 − e^−x for x ≥ 0, both to the last digit or two. Unlike math.Exp it is the same few IEEE
// operations on every machine, and in every store that takes the step itself, so that all decide alike: with
// x = k·ln 2 + r, e^−x is 2^−k·e^−r, and 1 − e^−r is Taylor's series.
func decay(x float64) (left, gone float64) {
	const ln2High, ln2Low = 6.93147180369123816490e-01, 1.90821492927058770002e-10 // their sum is ln 2; k·ln2High is exact
	if x >= 700 {
		return 0, 1
	}
	k := math.Floor(float64(x/math.Ln2) + 0.5)
	r := float64(x-float64(k*ln2High)) - float64(k*ln2Low)
	series := 0.0
	for _, c := range inverseFactorials {
		series = c - float64(r*series)
	}
	gone = float64(r * series)
	if k == 0 {
		return 1 - gone, gone
	}
	left = math.Ldexp(1-gone, -int(k)) // exact
	return left, 1 - left
}

// inverseFactorials are 1/15! to 1/1!.
var inverseFactorials = [...]float64{
	1.0 / 1307674368000, 1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
	1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1,
}

func (m exponential) take(state []int64, cost, now int64) ([]int64, Decision) {
	rate, elapsed := m.at(state, now)
	next := m.next(rate, elapsed, float64(cost))
	d := Decision{Allowed: cost == 0 || next <= m.limit}
	if cost > 0 && (d.Allowed || m.strict) {
		state = append(state[:0], now+m.lead(state, now), int64(math.Float64bits(next)))
		rate, elapsed = next, 0
	}
	lead := time.Duration(m.lead(state, now))
	if !d.Allowed {
		d.RetryAfter = lead + m.wait(elapsed, func(elapsed int64) bool {
			return m.next(rate, elapsed, float64(cost)) <= m.limit
		})
	}
	d.Remaining = m.remaining(rate, elapsed)
	if len(state) > 0 {
		d.ResetAfter = lead + m.wait(elapsed, func(elapsed int64) bool { return m.faded(rate, elapsed) })
	}
	return state, d
}

// lead is how far the last update lies ahead of now, after time stepped back.
func (m exponential) lead(state []int64, now int64) int64 {
	if len(state) == 0 {
		return 0
	}
	return max(0, state[0]-now)
}

// faded reports whether the rate no longer makes a difference to the smallest request.
func (m exponential) faded(rate float64, elapsed int64) bool {
	return rate == 0 || elapsed > 0 && m.next(rate, elapsed, 1) <= 1
}

// remaining returns the largest whole cost whose next rate is within the limit.
func (m exponential) remaining(rate float64, elapsed int64) int64 {
	old, gain := m.next(rate, elapsed, 0), 1.0
	if elapsed > 0 {
		x := float64(elapsed) / m.period
		_, gone := decay(x)
		gain = float64(gone / x)
	}
	fits := func(cost int64) bool { return m.next(rate, elapsed, float64(cost)) <= m.limit }
	cost := int64(max(0, min(m.limit, (m.limit-old)/gain)))
	for cost > 0 && !fits(cost) { // the quotient may be off by a rounding
		cost--
	}
	for cost < int64(m.limit) && fits(cost+1) {
		cost++
	}
	return cost
}

// wait returns the smallest d such that passes(elapsed+d), which becomes true once and stays so.
func (m exponential) wait(elapsed int64, passes func(elapsed int64) bool) time.Duration {
	if passes(elapsed) {
		return 0
	}
	high := int64(1)
	for !passes(elapsed + high) {
		high *= 2
	}
	low := high / 2 // does not pass, or is 0
	return time.Duration(low + 1 + int64(sort.Search(int(high-low-1), func(i int) bool {
		return passes(elapsed + low + 1 + int64(i))
	})))
}

// refund lowers the rate so that there is room for as many units more as it gives back, now. It leaves the time
// of the last update, for units weigh less the longer ago that is: to move it would take room away.
func (m exponential) refund(state []int64, cost, now int64) []int64 {
	rate, elapsed := m.at(state, now)
	left := rate - float64(cost)
	if elapsed > 0 {
		x := float64(elapsed) / m.period
		kept, gone := decay(x)
		left = rate - float64(float64(cost)*float64(float64(gone/kept)/x))
	}
	if left <= 0 {
		return state[:0]
	}
	return append(state[:0], state[0], int64(math.Float64bits(left)))
}

func (m exponential) convert(u usage, now int64) []int64 {
	return []int64{now, int64(math.Float64bits(float64(u.units)))}
}

func (m exponential) heal(state []int64, now int64) bool {
	if state[0] <= now+int64(m.period) {
		return false
	}
	state[0], state[1] = now, int64(math.Float64bits(m.limit))
	return true
}

// A strict limit counts what it denies too, so that a rate may be far above it.
func (m exponential) valid(state []int64, farthest int64) bool {
	if len(state) != 2 || !within(state[0], farthest) {
		return false
	}
	rate := math.Float64frombits(uint64(state[1]))
	return rate >= 0 && !math.IsInf(rate, 1)
}

// exponentialOutstanding is all units at once, and none later: their weight is then part of that of the units after them.
func exponentialOutstanding(_ Limit, cost int64, _ Decision, elapsed time.Duration) int64 {
	if elapsed > 0 {
		return 0
	}
	return cost
}
