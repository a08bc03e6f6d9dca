package algorithm

import "time"

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
