package algorithm

import "time"

// Hybrid is quota and rate in turn. A key starts bursty, under [QuotaReset]. When it takes exactly the last unit of
// its quota it becomes smooth: under [GCRA] with a burst of Count, and in debt so that the next unit passes when the
// window has ended, then one each T. When the debt is paid it is as new. A cost above what is left is denied and
// changes nothing. A key that takes the whole quota with its first request, so also any key of a Count of 1, stays
// bursty: in the source, too, starting anew comes before the test for the last unit.
//
//   - Bound: 2q−1 in any window at a cost of 1 each (for q ≥ 2); 2q in a closed one at other costs.
//   - Reaction: q units.
//   - State: three words, the mode with the window's start and count, or with the arrival time and its fraction.
//   - Use: where the first window must not exceed the quota, and heavy clients should come evenly. Its author
//     advises GCRA instead.
//   - Source: T. Finch, "hybrid quota-linear rate limiter", dotat.at, 2026.
const Hybrid Algorithm = "hybrid"

// hybrid is Tony Finch's quota-linear limiter. A key is bursty, and may use its quota as it likes within a window
// that starts with its first request, until it uses exactly the rest of it; from then on it is smooth, and
// linear, in debt so that the next unit passes when the window has ended; until it has a full bucket again.
//
// State: the mode; bursty: the window's start and the units used in it; smooth: the theoretical arrival time.
type hybrid struct {
	count, width int64
	linear       linear // of capacity count: its depth is one window
}

const (
	bursty = iota
	smooth
)

func newHybrid(l Limit, tick int64) (hybrid, error) {
	width, err := wholeTicks(l, tick)
	if err != nil {
		return hybrid{}, err
	}
	lin, err := newLinear(Limit{Algorithm: GCRA, Count: l.Count, Period: l.Period, Burst: l.Count}, l.Count, tick)
	return hybrid{count: l.Count, width: width, linear: lin}, err
}

func (m hybrid) take(state []int64, cost, now int64) ([]int64, Decision) {
	switch {
	case m.fresh(state, now):
		return m.begin(state, cost, now)
	case state[0] == bursty:
		return m.takeBursty(state, cost, now)
	}
	_, d := m.linear.take(state[1:], cost, now) // in place
	return state, d
}

// fresh reports whether a bursty window has ended, or a smooth bucket is full again.
func (m hybrid) fresh(state []int64, now int64) bool {
	switch {
	case len(state) == 0:
		return true
	case state[0] == bursty:
		return state[1]+m.width <= now
	}
	return m.linear.debt(state[1:], now) == Span{}
}

// begin starts a window. As in the original, whose reset comes before the test for the last token, a request
// that takes the whole quota at once leaves the key bursty.
func (m hybrid) begin(state []int64, cost, now int64) ([]int64, Decision) {
	d := Decision{Allowed: true, Remaining: m.count - cost}
	if cost > 0 {
		state = append(state[:0], bursty, now, cost)
		d.ResetAfter = time.Duration(m.width)
	}
	return state, d
}

func (m hybrid) takeBursty(state []int64, cost, now int64) ([]int64, Decision) {
	end, left := state[1]+m.width, m.count-state[2]
	d := Decision{Allowed: true, ResetAfter: time.Duration(end - now)}
	switch {
	case cost == 0:
	case cost > left:
		d.Allowed, d.RetryAfter = false, time.Duration(end-now)
	case cost == left:
		// The arrival time that lets one unit pass at the window's end.
		debt := m.linear.plus(Span{Ticks: end - now}, m.linear.Times(m.count-1))
		left = 0
		state = append(state[:0], smooth, now+debt.Ticks, debt.Rem)
		d.ResetAfter = debt.ceil()
	default:
		left -= cost
		state[2] += cost
	}
	d.Remaining = left
	return state, d
}

func (m hybrid) refund(state []int64, cost, now int64) []int64 {
	switch {
	case m.fresh(state, now):
		return state[:0]
	case state[0] == bursty:
		state[2] = max(0, state[2]-cost)
		return state
	}
	m.linear.refund(state[1:], cost, now) // in place
	return state
}

// convert leaves a smooth key smooth, and forgives debt beyond one window.
func (m hybrid) convert(u usage, now int64) []int64 {
	old, ok := u.from.(hybrid)
	switch {
	case ok && u.state[0] == smooth:
		u.from, u.state = old.linear, u.state[1:]
		state := m.linear.convert(u, now)
		return append([]int64{smooth}, append(state, 0)[:2]...)
	case ok && old.width == m.width:
		now = u.state[1]
	}
	return []int64{bursty, now, u.units}
}

func (m hybrid) heal(state []int64, now int64) bool {
	switch {
	case state[0] == bursty && state[1] > now+m.width:
		state[1], state[2] = now, m.count
	case state[0] == smooth && state[1] > now+2*m.width:
		state[1], state[2] = now+m.width, 0
	default:
		return false
	}
	return true
}

func (m hybrid) cancel(state []int64, cost, end, now int64) ([]int64, int64) {
	switch {
	case m.fresh(state, now):
		return state[:0], 0
	case state[0] == smooth:
		_, back := m.linear.cancel(state[1:], cost, end, now) // in place
		return state, back
	case state[1]+m.width != end:
		return state, 0 // taken in another window
	}
	return m.refund(state, cost, now), cost
}

func (m hybrid) valid(state []int64, farthest int64) bool {
	switch {
	case len(state) != 3 || !within(state[1], farthest):
		return false
	case state[0] == bursty:
		return counts(state[2:], m.count)
	}
	return state[0] == smooth && 0 <= state[2] && state[2] < m.linear.Unit
}
