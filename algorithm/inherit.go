package algorithm

import (
	"math"
	"math/bits"
	"slices"
)

// used is what a key has used under one limit, for another that takes its place.
type used struct {
	units int64   // rounded up to whole ones
	end   int64   // when the last of them would have come back, rounded up
	from  machine // that made the state
	state []int64 // whole
}

// usedAt returns what a key has used at now.
func (p *Program) usedAt(state []int64, now int64) used {
	_, d := p.machine.take(state, 0, now)
	return used{units: p.capacity - d.Remaining, end: now + int64(d.ResetAfter), from: p.machine, state: state}
}

// inherit returns the state of a key that has used at now what it had under another limit of the same ticks, and more that was over a capacity before:
// as many units, at most p's capacity, rounded up where the algorithms differ in what they know of parts. They come back as under
// the other limit where p knows when that is, and else not before. over is how many of the units are more than the capacity, and until
// when they would have been back.
func (p *Program) inherit(u used, more, now int64) (_ []int64, over, until int64) {
	all := u.units + min(more, maxUnits-u.units)
	if more > 0 {
		u.from, u.state = nil, nil // it is not known of which units they are
	}
	if over = max(0, all-p.capacity); over > 0 {
		until = u.end
	}
	if all == 0 {
		return nil, 0, 0
	}
	u.units = all - over
	return p.machine.inherit(u, now), over, until
}

const maxUnits = 1<<63 - 1

// started returns when a window of this width began that ends when the units come back, if it has begun by now and has not ended.
func (u used) started(width, now int64) int64 {
	return min(now, max(now-width+1, u.end-width))
}

// back returns when so many of the units would have come back, or if that is not known, all.
func (u used) back(units, now int64) int64 {
	if u.from == nil || units >= u.units {
		return u.end
	}
	_, d := u.from.take(slices.Clone(u.state), 0, now)
	_, d = u.from.take(slices.Clone(u.state), d.Remaining+units, now)
	if d.RetryAfter == Never {
		return u.end
	}
	return now + int64(d.RetryAfter)
}

// debt returns what is to be paid under a limit that knows parts of units, and its kernel.
func (u used) debt(now int64) (kernel linear, debt instant, ok bool) {
	switch m := u.from.(type) {
	case linear:
		return m, m.debt(u.state, now), true
	case hybrid:
		if u.state[0] == smooth {
			return m.linear, m.linear.debt(u.state[1:], now), true
		}
	}
	return linear{}, instant{}, false
}

// inherit keeps what has come back of a unit: a limit that changes to and fro must not keep it from ever coming back.
func (m linear) inherit(u used, now int64) []int64 {
	debt := m.times(u.units)
	if old, owed, ok := u.debt(now); ok {
		if exact := m.scaled(old, owed); m.less(exact, debt) {
			debt = exact
		}
	}
	return m.store(nil, instant{now + debt.ticks, debt.rem})
}

// scaled returns a debt of another kernel in units of this one's interval, rounded up to a tick.
func (m linear) scaled(old linear, debt instant) instant {
	// debt/old.T·m.T = (ticks·old.unit + rem)/old.step · m.step/m.unit, in whole units and a rest of them.
	hi, lo := bits.Mul64(uint64(debt.ticks), uint64(old.unit))
	lo, carry := bits.Add64(lo, uint64(debt.rem), 0)
	if hi += carry; hi >= uint64(old.step) {
		return m.depth
	}
	whole, rest := bits.Div64(hi, lo, uint64(old.step))
	if whole >= uint64(m.units(m.depth)) {
		return m.depth
	}
	// rest/old.step of an interval of m.step/m.unit ticks.
	hi, lo = bits.Mul64(rest, uint64(m.step))
	part, left := bits.Div64(hi, lo, uint64(old.step)) // in 1/m.unit ticks, below m.step
	if left > 0 {
		part++
	}
	return m.plus(m.times(int64(whole)), instant{int64(part / uint64(m.unit)), int64(part % uint64(m.unit))})
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
	return []int64{m.window(now).start, u.units}
}

func (m quotaReset) inherit(u used, now int64) []int64 {
	return []int64{u.started(m.width, now), u.units}
}

func (m slidingWindow) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(slidingWindow); ok && old.width == m.width {
		index, previous, current, elapsed := old.at(u.state, now)
		current = min(current, m.count)
		// As many of the previous as there is room for: room·width/(width − elapsed).
		hi, lo := bits.Mul64(uint64(m.count-current), uint64(m.width))
		if left := uint64(m.width - elapsed); hi < left {
			most, _ := bits.Div64(hi, lo, left)
			previous = int64(min(uint64(previous), most))
		}
		return []int64{index, min(previous, m.count), current}
	}
	return []int64{floorDiv(now, m.width), 0, u.units}
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
		n := live[i+1] - max(0, min(skip, live[i+1]))
		skip -= live[i+1] - n
		if n == 0 {
			continue
		}
		t := live[i]
		if old.width != m.width {
			t = used{end: t + old.width}.started(m.width, now)
		}
		state = append(state, t, n)
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

func (m hybrid) inherit(u used, now int64) []int64 {
	if old, ok := u.from.(hybrid); ok && u.state[0] == smooth {
		kept := m.linear.inherit(used{units: u.units, from: old.linear, state: u.state[1:]}, now)
		if m.linear.unit == 1 {
			return []int64{smooth, kept[0], 0}
		}
		return []int64{smooth, kept[0], kept[1]}
	}
	return []int64{bursty, u.started(m.width, now), u.units}
}

func (m exponential) inherit(u used, now int64) []int64 {
	at, rate := now, min(float64(u.units), m.limit)
	if old, ok := u.from.(exponential); ok && old.period == m.period {
		r, elapsed := old.at(u.state, now)
		at, rate = max(now, u.state[0]), min(old.next(r, elapsed, 0), m.limit)
	}
	return []int64{at, int64(math.Float64bits(rate))}
}
