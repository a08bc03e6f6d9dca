package algorithm

import (
	"slices"
	"time"
)

// SlidingLog remembers when each unit was admitted and denies what would bring the last window, (now−Period, now],
// above Count. A unit exactly one Period old is gone.
//
//   - Bound: q in any half-open window, exactly; q+q⌊L/w⌋ in any closed interval, so 2q in a closed window: q at
//     its first instant, q at its last.
//   - Reaction: q units.
//   - State: two words for each instant at which units of the last window were admitted: up to 2q. Count is at
//     most [MaxLogCount].
//   - Use: where the quota is small and must be exact: passwords, payments, messages that cost money.
//   - Source: "How to Design a Scalable Rate Limiting Algorithm", Kong, 2017.
const SlidingLog Algorithm = "sliding-log"

// slidingLog remembers when each unit was admitted, and counts those of the last window, (now−width, now].
// Units admitted at one time share an entry.
//
// State: pairs of (time, units), oldest first.
type slidingLog struct {
	count, width int64
}

func newSlidingLog(l Limit, tick int64) (slidingLog, error) {
	width, err := wholeTicks(l, tick)
	return slidingLog{count: l.Count, width: width}, err
}

func (m slidingLog) take(state []int64, cost, now int64) ([]int64, Decision) {
	live := m.live(state, now)
	used := units(live)
	d := Decision{Allowed: cost <= m.count-used || cost == 0}
	switch {
	case !d.Allowed:
		d.RetryAfter = m.freed(live, used-(m.count-cost), now)
	case cost > 0:
		state = m.add(append(state[:0], live...), cost, now)
		live, used = state, used+cost
	}
	d.Remaining = max(0, m.count-used)
	if used > 0 {
		d.ResetAfter = time.Duration(live[len(live)-2] + m.width - now)
	}
	return state, d
}

// live returns the entries that are not a whole window old.
func (m slidingLog) live(state []int64, now int64) []int64 {
	for len(state) > 0 && state[0] <= now-m.width {
		state = state[2:]
	}
	return state
}

func units(entries []int64) (sum int64) {
	for i := 1; i < len(entries); i += 2 {
		sum += entries[i]
	}
	return sum
}

// freed returns the wait until at least this many units have left the window.
func (m slidingLog) freed(live []int64, need, now int64) time.Duration {
	i := 0
	for need -= live[1]; need > 0; need -= live[i+1] {
		i += 2
	}
	return time.Duration(live[i] + m.width - now)
}

func (m slidingLog) add(entries []int64, cost, now int64) []int64 {
	if n := len(entries); n > 0 && entries[n-2] >= now { // the log stays in order when time steps back
		entries[n-1] += cost
		return entries
	}
	return append(entries, now, cost)
}

// refund takes the newest units out first.
func (m slidingLog) refund(state []int64, cost, now int64) []int64 {
	state = append(state[:0], m.live(state, now)...)
	for len(state) > 0 && cost > 0 {
		last := len(state) - 1
		back := min(cost, state[last])
		state[last] -= back
		cost -= back
		if state[last] == 0 {
			state = slices.Delete(state, last-1, last+1)
		}
	}
	return state
}

func (m slidingLog) convert(u usage, now int64) []int64 { return []int64{now, u.units} }

func (m slidingLog) heal(state []int64, now int64) bool {
	if state[len(state)-2] <= now+m.width {
		return false
	}
	for i := 0; i < len(state); i += 2 {
		state[i] = min(state[i], now)
	}
	return true
}

func (m slidingLog) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	for i := 0; i < len(state); i += 2 {
		if state[i] != end-m.width {
			continue
		}
		if state[i+1] -= min(cost, state[i+1]); state[i+1] == 0 {
			state = append(state[:i], state[i+2:]...)
		}
		return state, cost
	}
	return state, 0
}

func (m slidingLog) valid(state []int64, farthest int64) bool {
	if len(state)%2 != 0 {
		return false
	}
	for left := m.count; len(state) > 0; state = state[2:] {
		t, units := state[0], state[1]
		if left -= units; units < 1 || left < 0 || !within(t, farthest) || len(state) > 2 && t > state[2] {
			return false
		}
	}
	return true
}
