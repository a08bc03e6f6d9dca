package algorithm

import "time"

// FixedWindow counts the units of the current window, of a grid of windows of one Period that is aligned to the Unix
// epoch, and denies what would bring the count above Count.
//
//   - Bound: q+q⌈L/w⌉ in any closed interval; so 2q in any window, and in an instant: q just before an edge of the
//     grid and q just after.
//   - Reaction: q units, or 2q if an edge comes between.
//   - State: two words, the window's index and its count.
//   - Use: for quotas and bills by the hour or by the day (UTC), where everybody knows when the count starts anew.
//   - Source: N. Mahdi, "An alternative approach to rate limiting", Figma, 2017, which says why not, too.
const FixedWindow Algorithm = "fixed-window"

// fixedWindow counts the units of the current window of a grid that is aligned to the Unix epoch.
//
// State: the window's index, the units used in it.
type fixedWindow struct {
	count, width int64
}

func newFixedWindow(l Limit, tick int64) (fixedWindow, error) {
	width, err := wholeTicks(l, tick)
	return fixedWindow{count: l.Count, width: width}, err
}

func (m fixedWindow) take(state []int64, cost, now int64) ([]int64, Decision) {
	index, used := floorDiv(now, m.width), int64(0)
	if len(state) > 0 && state[0] >= index { // a time before the window is charged to the window
		index, used = state[0], state[1]
	}
	d := Decision{Allowed: cost <= m.count-used || cost == 0}
	untilNext := time.Duration((index+1)*m.width - now)
	switch {
	case !d.Allowed:
		d.RetryAfter = untilNext
	case cost > 0:
		used += cost
		state = append(state[:0], index, used)
	}
	d.Remaining = max(0, m.count-used)
	if used > 0 {
		d.ResetAfter = untilNext
	}
	return state, d
}

func (m fixedWindow) refund(state []int64, cost, now int64) []int64 {
	if state[0] < floorDiv(now, m.width) || state[1] <= cost {
		return state[:0]
	}
	return append(state[:0], state[0], state[1]-cost)
}

func (m fixedWindow) convert(u usage, now int64) []int64 {
	return []int64{floorDiv(now, m.width), u.units}
}

func (m fixedWindow) heal(state []int64, now int64) bool {
	index := floorDiv(now, m.width)
	if state[0] <= index+1 {
		return false
	}
	state[0], state[1] = index, m.count
	return true
}

// floorDiv rounds towards minus infinity, so that times before 1970 have windows too.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (m fixedWindow) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest/m.width+1) && counts(state[1:], m.count)
}
