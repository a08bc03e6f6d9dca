package algorithm

import (
	"math/bits"
	"time"
)

// SlidingWindow estimates the last window's units from the counts of two windows of a grid aligned to the Unix
// epoch: the current one's, and the previous one's times the part of it that the sliding window still covers. It
// denies what would bring the estimate above Count; the comparison is exact, nothing is rounded in anybody's favour.
//
//   - Bound: 2q−1 in any window, half-open or closed; not more than q at one instant.
//   - Reaction: q to 2q−1 units, by where in the grid the client starts; q within one window of the grid.
//   - State: three words, the window's index and the two counts.
//   - Use: for large quotas that should slide, in constant space. A client whose units of the previous window all came
//     early is held back longer than [SlidingLog] would.
//   - Source: J. Desgats, "How we built rate limiting capable of scaling to millions of domains", Cloudflare, 2017.
const SlidingWindow Algorithm = "sliding-window"

// slidingWindow estimates the units of the last window from two counters of a grid aligned to the Unix epoch:
// the previous window's count, weighted by how much of it still lies in the sliding one, and the current's.
//
// State: the current window's index, the previous window's units, the current one's.
type slidingWindow struct {
	count, width int64
}

func newSlidingWindow(l Limit, tick int64) (slidingWindow, error) {
	width, err := wholeTicks(l, tick)
	return slidingWindow{count: l.Count, width: width}, err
}

// at returns the counters of the newest window up to now, and how far now has gone into it. A time before
// that window counts as its start.
func (m slidingWindow) at(state []int64, now int64) (index, previous, current, elapsed int64) {
	index = floorDiv(now, m.width)
	if len(state) > 0 {
		switch ahead := index - state[0]; {
		case ahead <= 0:
			index, previous, current = state[0], state[1], state[2]
		case ahead == 1:
			previous = state[2]
		}
	}
	return index, previous, current, max(0, now-index*m.width)
}

func (m slidingWindow) take(state []int64, cost, now int64) ([]int64, Decision) {
	index, previous, current, elapsed := m.at(state, now)
	start := index*m.width + elapsed // now, or the window's start if that is later
	remaining := m.count - current - m.weighted(previous, elapsed)
	d := Decision{Allowed: cost == 0 || cost <= remaining}
	switch {
	case !d.Allowed:
		d.RetryAfter = time.Duration(start-now) + m.retry(previous, current, elapsed, cost)
	case cost > 0:
		current += cost
		remaining -= cost
		state = append(state[:0], index, previous, current)
	}
	d.Remaining = max(0, remaining)
	switch {
	case current > 0:
		d.ResetAfter = time.Duration((index+2)*m.width - now)
	case previous > 0:
		d.ResetAfter = time.Duration((index+1)*m.width - now)
	}
	return state, d
}

// weighted returns previous·(width−elapsed)/width, rounded up: units are whole, so that is exact.
func (m slidingWindow) weighted(previous, elapsed int64) int64 {
	hi, lo := bits.Mul64(uint64(previous), uint64(m.width-elapsed))
	q, r := bits.Div64(hi, lo, uint64(m.width))
	if r > 0 {
		q++
	}
	return int64(q)
}

// retry returns the wait until cost fits, in this window or in the next.
func (m slidingWindow) retry(previous, current, elapsed, cost int64) time.Duration {
	if room := m.count - current - cost; room >= 0 {
		return time.Duration(m.faded(previous, room) - elapsed)
	}
	return time.Duration(m.width - elapsed + m.faded(current, m.count-cost))
}

// faded returns how far into a window at most room of the previous window's units count: the smallest e
// with previous·(width−e) ≤ room·width.
func (m slidingWindow) faded(previous, room int64) int64 {
	if previous <= room {
		return 0
	}
	hi, lo := bits.Mul64(uint64(m.width), uint64(previous-room))
	e, r := bits.Div64(hi, lo, uint64(previous))
	if r > 0 {
		e++
	}
	return int64(e)
}

// refund takes units out of the current window first.
func (m slidingWindow) refund(state []int64, cost, now int64) []int64 {
	index, previous, current, _ := m.at(state, now)
	back := min(cost, current)
	current -= back
	previous -= min(cost-back, previous)
	if current == 0 && previous == 0 {
		return state[:0]
	}
	return append(state[:0], index, previous, current)
}

func (m slidingWindow) convert(u usage, now int64) []int64 {
	return []int64{floorDiv(now, m.width), 0, u.units}
}

func (m slidingWindow) heal(state []int64, now int64) bool {
	index := floorDiv(now, m.width)
	if state[0] <= index+1 {
		return false
	}
	state[0], state[1], state[2] = index, 0, m.count
	return true
}

func (m slidingWindow) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	switch state[0] - (floorDiv(end, m.width) - 2) {
	case 0: // taken in the current window
		state[2] -= min(cost, state[2])
	case 1: // in the previous
		state[1] -= min(cost, state[1])
	default:
		return state, 0
	}
	if state[1] == 0 && state[2] == 0 {
		state = state[:0]
	}
	return state, cost
}

func (m slidingWindow) valid(state []int64, farthest int64) bool {
	return len(state) == 3 && within(state[0], farthest/m.width+1) && counts(state[1:2], m.count) && counts(state[2:], m.count)
}
