package algorithm_test

import "math/big"

// tokenBucket holds tokens that drip in at a rate, at most its capacity; a request takes as many as it costs. When
// time steps back the drip runs backwards, so that no nanosecond is paid for twice.
type tokenBucket struct {
	capacity, rate *big.Rat // tokens, tokens per nanosecond
	held           *big.Rat // at last; nil: full since ever
	last           int64
}

func (m *tokenBucket) at(now int64) *big.Rat {
	if m.held == nil {
		return m.capacity
	}
	held := add(m.held, mul(m.rate, between(m.last, now)))
	if less(m.capacity, held) {
		return m.capacity
	}
	return held
}

func (m *tokenBucket) fits(now, cost int64) answer { return is(atMost(rat(cost), m.at(now))) }
func (m *tokenBucket) fresh(now int64) answer      { return is(atMost(m.capacity, m.at(now))) }
func (m *tokenBucket) admit(now, cost int64)       { m.held, m.last = sub(m.at(now), rat(cost)), now }

// leakyBucket is the meter: each unit raises the level, which leaks away at a rate; it must not spill over.
type leakyBucket struct {
	capacity, rate *big.Rat
	level          *big.Rat // at last; nil: empty since ever
	last           int64
}

func (m *leakyBucket) at(now int64) *big.Rat {
	if m.level == nil {
		return rat(0)
	}
	return greater(rat(0), sub(m.level, mul(m.rate, between(m.last, now))))
}

func (m *leakyBucket) fits(now, cost int64) answer {
	return is(atMost(add(m.at(now), rat(cost)), m.capacity))
}
func (m *leakyBucket) fresh(now int64) answer { return is(m.at(now).Sign() == 0) }
func (m *leakyBucket) admit(now, cost int64)  { m.level, m.last = add(m.at(now), rat(cost)), now }

// virtualScheduling is the cell rate algorithm as ITU-T I.371 states it for one cell; a request of cost c is c cells that arrive at
// once, the last of which must not be earlier than the tolerance allows.
type virtualScheduling struct {
	interval, tolerance *big.Rat
	arrival             *big.Rat // the theoretical one; nil: none before
}

// last returns the theoretical arrival time of the last of cost cells.
func (m *virtualScheduling) last(now, cost int64) *big.Rat {
	first := rat(now)
	if m.arrival != nil {
		first = greater(first, m.arrival)
	}
	return add(first, mul(rat(cost-1), m.interval))
}

func (m *virtualScheduling) fits(now, cost int64) answer {
	return is(atMost(sub(m.last(now, cost), m.tolerance), rat(now)))
}
func (m *virtualScheduling) fresh(now int64) answer {
	return is(m.arrival == nil || atMost(m.arrival, rat(now)))
}
func (m *virtualScheduling) admit(now, cost int64) { m.arrival = add(m.last(now, cost), m.interval) }

// score is the cooldown of bravenewmethod.com (2013), with the idle test mended: a hit adds one interval to the
// score, or to now if the score has cooled down; the score may not exceed now by more than the period.
type score struct {
	interval, ceiling *big.Rat
	value             *big.Rat
}

func (m *score) next(now, cost int64) *big.Rat {
	base := rat(now)
	if m.value != nil {
		base = greater(base, m.value)
	}
	return add(base, mul(rat(cost), m.interval))
}

func (m *score) fits(now, cost int64) answer {
	return is(atMost(m.next(now, cost), add(rat(now), m.ceiling)))
}
func (m *score) fresh(now int64) answer { return is(m.value == nil || atMost(m.value, rat(now))) }
func (m *score) admit(now, cost int64)  { m.value = m.next(now, cost) }

// spacing remembers the last hit and wants an interval between two.
type spacing struct {
	interval *big.Rat
	last     int64
	hit      bool
}

func (m *spacing) fits(now, cost int64) answer {
	return is(cost == 1 && (!m.hit || atMost(m.interval, between(m.last, now))))
}
func (m *spacing) fresh(now int64) answer { return m.fits(now, 1) }
func (m *spacing) admit(now, _ int64)     { m.last, m.hit = now, true }

// shaper is a queue that releases one unit per interval, the first at once when it is idle. A request of cost c
// takes c turns in a row, the last of which may be at most the longest wait away; its delay is that of its first.
type shaper struct {
	interval, longest *big.Rat
	next              *big.Rat // the earliest turn that is free
}

func (m *shaper) first(now int64) *big.Rat {
	if m.next == nil {
		return rat(now)
	}
	return greater(rat(now), m.next)
}

func (m *shaper) fits(now, cost int64) answer {
	last := add(m.first(now), mul(rat(cost-1), m.interval))
	return is(atMost(sub(last, rat(now)), m.longest))
}
func (m *shaper) fresh(now int64) answer   { return is(m.next == nil || atMost(m.next, rat(now))) }
func (m *shaper) delay(now int64) *big.Rat { return sub(m.first(now), rat(now)) }
func (m *shaper) admit(now, cost int64) {
	m.next = add(m.first(now), mul(rat(cost), m.interval))
}
