package algorithm

import "time"

// QuotaReset is [FixedWindow] with windows of the key's own: one starts with the first request admitted after the
// last one ended.
//
//   - Bound: max(q+q⌊L/w⌋, q−1+q⌈L/w⌉) in any closed interval; so 2q−1 in a half-open window, 2q in a closed one.
//   - Reaction: q units.
//   - State: two words, the window's start and its count.
//   - Use: for quotas, without an edge that all clients share and rush to.
//   - Source: T. Finch, "hybrid quota-linear rate limiter", dotat.at, 2026, in its section on quota resets.
const QuotaReset Algorithm = "quota-reset"

// quotaReset counts the units of a window that starts with the first request it admits.
//
// State: the window's start, the units used in it.
type quotaReset struct {
	count, width int64
}

func newQuotaReset(l Limit, tick int64) (quotaReset, error) {
	width, err := wholeTicks(l, tick)
	return quotaReset{count: l.Count, width: width}, err
}

func (m quotaReset) take(state []int64, cost, now int64) ([]int64, Decision) {
	start, used, open := now, int64(0), m.open(state, now)
	if open {
		start, used = state[0], state[1]
	}
	d := Decision{Allowed: cost <= m.count-used || cost == 0}
	switch {
	case !d.Allowed:
		d.RetryAfter = time.Duration(start + m.width - now)
	case cost > 0:
		open, used = true, used+cost
		state = append(state[:0], start, used)
	}
	d.Remaining = max(0, m.count-used)
	if open {
		d.ResetAfter = time.Duration(start + m.width - now)
	}
	return state, d
}

// open reports whether the state's window has not ended.
func (m quotaReset) open(state []int64, now int64) bool {
	return len(state) > 0 && state[0]+m.width > now
}

func (m quotaReset) refund(state []int64, cost, now int64) []int64 {
	if !m.open(state, now) {
		return state[:0]
	}
	return append(state[:0], state[0], max(0, state[1]-cost))
}

func (m quotaReset) convert(u usage, now int64) []int64 { return []int64{now, u.units} }

func (m quotaReset) heal(state []int64, now int64) bool {
	if state[0] <= now+m.width {
		return false
	}
	state[0], state[1] = now, m.count
	return true
}

func (m quotaReset) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest) && counts(state[1:], m.count)
}
