package algorithm

import (
	"math/bits"
	"time"
)

// SlidingBuckets cuts the Period into Cells cells of a grid aligned to the Unix epoch, and counts the current cell
// and the Cells before it: more than one window. It denies what would bring the sum above Count.
//
//   - Bound: q in any window, half-open or closed; with cells of d = w/Cells, q⌈(L+d)/(w+d)⌉ in any closed interval.
//   - Reaction: q units.
//   - State: Cells+2 words, the newest cell's index and a count for each cell. Cells is at most [MaxCells].
//   - Use: where no window may ever hold more than the quota, and it is too large for [SlidingLog]. The price is up
//     to one cell of extra waiting; more cells make it less.
//   - Source: N. Mahdi, "An alternative approach to rate limiting", Figma, 2017, with one cell more.
const SlidingBuckets Algorithm = "sliding-buckets"

// slidingBuckets cuts the window into cells and counts the units of the current cell and of as many before it
// as a window has: together they span more than a window, so no window ever holds more than count.
//
// State: the index of the newest cell, then the units of cells+1 cells; the cell of index i is at i mod cells+1.
type slidingBuckets struct {
	count, width, cells int64
}

func newSlidingBuckets(l Limit, tick int64) (slidingBuckets, error) {
	width, err := wholeTicks(l, tick)
	if err == nil && width < l.Cells {
		err = refuse("cells", l.Cells, "at most %d for a period of %v in this store", width, l.Period)
	}
	return slidingBuckets{count: l.Count, width: width, cells: l.Cells}, err
}

// cell returns the index of the cell of a time: ⌊t·cells/width⌋, exactly.
func (m slidingBuckets) cell(t int64) int64 {
	window := floorDiv(t, m.width)
	hi, lo := bits.Mul64(uint64(t-window*m.width), uint64(m.cells))
	q, _ := bits.Div64(hi, lo, uint64(m.width))
	return window*m.cells + int64(q)
}

// start returns the first tick of a cell: ⌈i·width/cells⌉.
func (m slidingBuckets) start(i int64) int64 {
	window := floorDiv(i, m.cells)
	hi, lo := bits.Mul64(uint64(i-window*m.cells), uint64(m.width))
	q, r := bits.Div64(hi, lo, uint64(m.cells))
	if r > 0 {
		q++
	}
	return window*m.width + int64(q)
}

// slot is where the units of a cell are in the state.
func (m slidingBuckets) slot(i int64) int64 {
	return 1 + i - floorDiv(i, m.cells+1)*(m.cells+1)
}

// used returns the newest cell up to now and the sum of the cells that count with it.
func (m slidingBuckets) used(state []int64, now int64) (newest, sum int64) {
	newest = m.cell(now)
	if len(state) == 0 {
		return newest, 0
	}
	newest = max(newest, state[0])
	for i := max(newest-m.cells, state[0]-m.cells); i <= state[0]; i++ {
		sum += state[m.slot(i)]
	}
	return newest, sum
}

func (m slidingBuckets) take(state []int64, cost, now int64) ([]int64, Decision) {
	newest, used := m.used(state, now)
	d := Decision{Allowed: cost <= m.count-used || cost == 0}
	switch {
	case !d.Allowed:
		d.RetryAfter = m.freed(state, newest, used-(m.count-cost), now)
	case cost > 0:
		used += cost
		state = m.advance(state, newest)
		state[m.slot(newest)] += cost
	}
	d.Remaining = max(0, m.count-used)
	if used > 0 {
		d.ResetAfter = m.freed(state, newest, used, now)
	}
	return state, d
}

// freed returns the wait until at least this many of the units that count at newest no longer do.
func (m slidingBuckets) freed(state []int64, newest, need, now int64) time.Duration {
	i := max(newest-m.cells, state[0]-m.cells)
	for need -= state[m.slot(i)]; need > 0; need -= state[m.slot(i)] {
		i++
	}
	return time.Duration(m.start(i+m.cells+1) - now)
}

// advance makes newest the newest cell of the state, and empties the slots of the cells that it passes.
func (m slidingBuckets) advance(state []int64, newest int64) []int64 {
	if size := int(m.cells + 2); len(state) == 0 || newest-state[0] > m.cells {
		if cap(state) < size {
			state = make([]int64, size)
		}
		state = state[:size]
		clear(state)
	} else {
		for i := state[0] + 1; i <= newest; i++ {
			state[m.slot(i)] = 0
		}
	}
	state[0] = newest
	return state
}

// refund takes units out of the newest cells first.
func (m slidingBuckets) refund(state []int64, cost, now int64) []int64 {
	newest, used := m.used(state, now)
	if used <= cost {
		return state[:0]
	}
	state = m.advance(state, newest)
	for i := newest; cost > 0; i-- {
		back := min(cost, state[m.slot(i)])
		state[m.slot(i)] -= back
		cost -= back
	}
	return state
}

func (m slidingBuckets) convert(u usage, now int64) []int64 {
	newest := m.cell(now)
	state := m.advance(nil, newest)
	state[m.slot(newest)] = u.units
	return state
}

func (m slidingBuckets) heal(state []int64, now int64) bool {
	newest := m.cell(now)
	if state[0] <= newest+m.cells+1 {
		return false
	}
	clear(state)
	state[0], state[m.slot(newest)] = newest, m.count
	return true
}

func (m slidingBuckets) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	i := m.cell(end) - m.cells - 1
	if i > state[0] || i < state[0]-m.cells {
		return state, 0
	}
	state[m.slot(i)] -= min(cost, state[m.slot(i)])
	return state, cost
}

func (m slidingBuckets) valid(state []int64, farthest int64) bool {
	return int64(len(state)) == m.cells+2 && within(state[0], (farthest/m.width+1)*m.cells) && counts(state[1:], m.count)
}
