package algorithm

import (
	"math"
	"slices"
)

// used is what a key has used under one limit, for another that takes its place.
type used struct {
	units int64   // rounded up to whole ones, at most the capacity of the other, at least 1
	end   int64   // when the last of them would have come back
	from  machine // that made the state
	state []int64 // not to be changed
}

// started returns when a window of this width began that ends when the units come back, if it has begun by now and has not ended.
func (u used) started(width, now int64) int64 {
	return min(now, max(now-width+1, u.end-width))
}

// back returns when so many of the units would have come back, or if that is not known, all.
func (u used) back(units, now int64) int64 {
	if units >= u.units {
		return u.end
	}
	state, d := u.from.take(slices.Clone(u.state), 0, now)
	if _, d = u.from.take(state, d.Remaining+units, now); d.RetryAfter == Never {
		return u.end
	}
	return now + int64(d.RetryAfter)
}

// Each machine's inherit makes a state in which as many units are used. They come back as under the other limit where this one knows when
// that is, and else as if they had been taken now.

func (m linear) inherit(u used, now int64) []int64 {
	debt := m.times(u.units)
	return m.store(nil, instant{now + debt.ticks, debt.rem})
}

func (m refillBucket) inherit(u used, now int64) []int64 {
	last := u.back(m.amount, now) - m.width // so that no refill comes before as much would have come back
	if old, ok := u.from.(refillBucket); ok && old.width == m.width {
		last, _ = old.at(u.state, now)
	}
	return []int64{min(now, max(now-m.width+1, last)), u.units}
}

func (m fixedWindow) inherit(u used, now int64) []int64 {
	index := floorDiv(now, m.width)
	if old, ok := u.from.(fixedWindow); ok && old.width == m.width {
		index = max(index, u.state[0])
	}
	return []int64{index, u.units}
}

func (m calendar) inherit(u used, now int64) []int64 {
	start := m.window(now).start
	if old, ok := u.from.(calendar); ok && old.sameGrid(m) {
		start = max(start, u.state[0])
	}
	return []int64{start, u.units}
}

func (m quotaReset) inherit(u used, now int64) []int64 {
	return []int64{u.started(m.width, now), u.units}
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
	old, ok := asLog(u.from)
	if !ok {
		return []int64{u.started(m.width, now), u.units}
	}
	live := old.live(u.state, now)
	state := make([]int64, 0, len(live))
	skip := units(live) - u.units // those of the other limit that are too many: the oldest, which come back first
	for i := 0; i < len(live); i += 2 {
		n := live[i+1] - min(skip, live[i+1])
		skip -= live[i+1] - n
		if n == 0 {
			continue
		}
		t := live[i]
		if old.width != m.width {
			t = used{end: t + old.width}.started(m.width, now)
		}
		if last := len(state) - 2; last >= 0 && state[last] == t {
			state[last+1] += n
		} else {
			state = append(state, t, n)
		}
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

// inherit leaves a smooth key smooth; any other begins as a bursty one.
func (m hybrid) inherit(u used, now int64) []int64 {
	if _, ok := u.from.(hybrid); ok && u.state[0] == smooth {
		debt := m.linear.times(u.units)
		return []int64{smooth, now + debt.ticks, debt.rem}
	}
	return []int64{bursty, u.started(m.width, now), u.units}
}

func (m exponential) inherit(u used, now int64) []int64 {
	return []int64{now, int64(math.Float64bits(min(float64(u.units), m.limit)))}
}
