package algorithm

import "time"

// RefillBucket is a bucket of Burst tokens, which starts full and gains Count at once at the end of each Period. The
// periods start when a full bucket is first taken from. A denial takes nothing and moves no refill.
//
//   - Bound: max(b+q⌊L/w⌋, b−1+q⌈L/w⌉) in any closed interval, for Burst ≥ Count; so b+q−1 in a half-open
//     window, b+q in a closed one. Nearly b and q may come next to each other, on both sides of a refill.
//   - Reaction: b units within the first Period.
//   - State: two words, the last refill counted and the tokens missing.
//   - Use: for allowances that people read as "so many a day, saved up to so many".
//   - Source: Y. Xu, "High-performance rate limiting", Smyte, 2016.
const RefillBucket Algorithm = "refill-bucket"

// refillBucket holds up to burst tokens, to which amount are added at each tick of a grid. The grid starts
// when a full bucket is first taken from.
//
// State: the grid's last refill that was counted, the tokens missing from a full bucket after it.
type refillBucket struct {
	amount, width, burst int64
}

func newRefillBucket(l Limit, tick int64) (refillBucket, error) {
	width, err := wholeTicks(l, tick)
	if err != nil {
		return refillBucket{}, err
	}
	m := refillBucket{amount: l.Count, width: width, burst: l.Burst}
	if refills := m.refills(l.Burst); refills > (maxSpan/tick)/width {
		return m, refuseDepth(l)
	}
	return m, nil
}

// refills is how many refills it takes to add this many tokens.
func (m refillBucket) refills(tokens int64) int64 {
	if tokens <= 0 {
		return 0
	}
	return (tokens-1)/m.amount + 1
}

// at returns the last refill up to now and the tokens missing after it.
func (m refillBucket) at(state []int64, now int64) (last, missing int64) {
	if len(state) == 0 {
		return now, 0
	}
	last, missing = state[0], state[1]
	if now < last {
		return last, missing
	}
	elapsed := (now - last) / m.width
	if elapsed >= m.refills(missing) {
		return now, 0
	}
	return last + elapsed*m.width, missing - elapsed*m.amount
}

func (m refillBucket) take(state []int64, cost, now int64) ([]int64, Decision) {
	last, missing := m.at(state, now)
	d := Decision{Allowed: cost <= m.burst-missing || cost == 0}
	switch {
	case !d.Allowed:
		short := cost - (m.burst - missing)
		d.RetryAfter = time.Duration(last - now + m.refills(short)*m.width)
	case cost > 0:
		missing += cost
		state = append(state[:0], last, missing)
	}
	d.Remaining = m.burst - missing
	if missing > 0 {
		d.ResetAfter = time.Duration(last - now + m.refills(missing)*m.width)
	}
	return state, d
}

func (m refillBucket) refund(state []int64, cost, now int64) []int64 {
	last, missing := m.at(state, now)
	if missing <= cost {
		return state[:0]
	}
	return append(state[:0], last, missing-cost)
}

func (m refillBucket) convert(u usage, now int64) []int64 {
	if old, ok := u.from.(refillBucket); ok && old.width == m.width {
		now, _ = old.at(u.state, now)
	}
	return []int64{now, u.units}
}

func (m refillBucket) heal(state []int64, now int64) bool {
	if state[0] <= now+m.width {
		return false
	}
	state[0], state[1] = now, m.burst
	return true
}

func (m refillBucket) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest) && counts(state[1:], m.burst)
}

// refillOutstanding counts as if the tokens that were missing longest had come first.
func refillOutstanding(l Limit, cost int64, d Decision, elapsed time.Duration) int64 {
	missing := d.Limit - d.Remaining // when these were taken
	left := int64(d.ResetAfter - elapsed)
	come := refillBucket{amount: l.Count}.refills(missing) - ((left-1)/int64(l.Period) + 1)
	return max(0, min(cost, missing-max(0, come)*l.Count))
}
