package algorithm

import "math"

// used is what a key has used under one limit, for another that takes its place.
type used struct {
	units int64   // rounded up to whole ones, at most the capacity of the other, at least 1
	from  machine // that made the state
	state []int64 // not to be changed
}

// Each machine's inherit makes a state in which as many units are used. Where the other limit is of the same algorithm, and counts in the same
// windows, they come back when they would have; else they are as if they had been taken now.

func (m linear) inherit(u used, now int64) []int64 {
	debt := m.times(u.units)
	if old, ok := u.from.(linear); ok && old.step == m.step && old.unit == m.unit {
		if exact := old.debt(u.state, now); m.less(exact, debt) {
			debt = exact
		}
	}
	return m.store(nil, instant{now + debt.ticks, debt.rem})
}

func (m refillBucket) inherit(u used, now int64) []int64 {
	last := now
	if old, ok := u.from.(refillBucket); ok && old.width == m.width {
		last, _ = old.at(u.state, now)
	}
	return []int64{last, u.units}
}

func (m fixedWindow) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(fixedWindow); ok && old.width == m.width {
		return []int64{u.state[0], u.units}
	}
	return []int64{floorDiv(now, m.width), u.units}
}

func (m calendar) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(calendar); ok && old.sameGrid(m) {
		return []int64{u.state[0], u.units}
	}
	return []int64{m.window(now).start, u.units}
}

func (m quotaReset) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(quotaReset); ok && old.width == m.width {
		return []int64{u.state[0], u.units}
	}
	return []int64{now, u.units}
}

// inherit keeps as much of the previous window's count as this limit can have, for it fades; the rest is of the current window.
func (m slidingWindow) inherit(u used, now int64) []int64 {
	old, ok := u.from.(slidingWindow)
	if !ok || old.width != m.width {
		return []int64{floorDiv(now, m.width), 0, u.units}
	}
	index, previous, _, elapsed := old.at(u.state, now)
	previous = min(previous, m.count)
	return []int64{index, previous, max(0, u.units-m.weighted(previous, elapsed))}
}

func (m slidingLog) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(slidingLog); ok && old.width == m.width {
		return m.newest(old.live(u.state, now), u.units)
	}
	return []int64{now, u.units}
}

// newest returns as many units of a log: the oldest, which come back first, are left out.
func (m slidingLog) newest(live []int64, most int64) []int64 {
	state := make([]int64, 0, len(live))
	for skip := units(live) - most; len(live) > 0; live = live[2:] {
		off := max(0, min(skip, live[1]))
		skip -= off
		if n := live[1] - off; n > 0 {
			state = append(state, live[0], n)
		}
	}
	return state
}

// inherit keeps the ends of the leases, by which their holders find them, also where this limit's
// leases are shorter: the holders have their places until then.
func (m concurrent) inherit(u used, now int64) []int64 {
	old, ok := u.from.(concurrent)
	if !ok {
		return []int64{now, u.units}
	}
	state := m.newest(old.live(u.state, now), u.units)
	for i := 0; i < len(state); i += 2 {
		state[i] += old.width - m.width
	}
	return state
}

func asLog(m machine) (slidingLog, bool) {
	switch m := m.(type) {
	case slidingLog:
		return m, true
	case concurrent:
		return m.slidingLog, true
	}
	return slidingLog{}, false
}

func (m slidingBuckets) inherit(u used, now int64) []int64 {
	old, ok := u.from.(slidingBuckets)
	if !ok || old.width != m.width || old.cells != m.cells {
		newest := m.cell(now)
		state := m.advance(nil, newest)
		state[m.slot(newest)] = u.units
		return state
	}
	newest, sum := old.used(u.state, now)
	state := m.advance(append([]int64(nil), u.state...), newest)
	for i := newest - m.cells; i <= newest && sum > u.units; i++ { // the oldest come back first
		off := min(sum-u.units, state[m.slot(i)])
		state[m.slot(i)] -= off
		sum -= off
	}
	return state
}

// inherit leaves a smooth key smooth.
func (m hybrid) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(hybrid); ok && u.state[0] == smooth {
		debt := m.linear.times(u.units)
		return []int64{smooth, now + debt.ticks, debt.rem}
	} else if ok && old.width == m.width {
		return []int64{bursty, u.state[1], u.units}
	}
	return []int64{bursty, now, u.units}
}

func (m exponential) inherit(u used, now int64) []int64 {
	return []int64{now, int64(math.Float64bits(min(float64(u.units), m.limit)))}
}
