package algorithm

import (
	"fmt"
	"math"
)

// Check reports whether a state is of a form that the limit can have: the number of words, and the range of each. A store whose
// states others can reach (by hand, or by another program) asks before it gives a state to Apply or Heal,
// which take it for one. The empty state is always one.
func (p *Program) Check(state []int64) error {
	if len(state) == 0 || p.machine.valid(state, (MaxTime+maxSpan)/p.tick) {
		return nil
	}
	return fmt.Errorf("weir: the state %s is none that %v makes; it stays until it is reset", excerpt(state), p.limit)
}

// excerpt shows the first words of a state.
func excerpt(state []int64) string {
	const most = 8
	if len(state) <= most {
		return fmt.Sprint(state)
	}
	return fmt.Sprintf("%v… of %d words", state[:most], len(state))
}

// within reports whether a time is one that a state can have.
func within(t, farthest int64) bool { return -farthest <= t && t <= farthest }

// counts reports whether all words are numbers of units of a limit that, together, it can have admitted.
func counts(words []int64, most int64) bool {
	for _, n := range words {
		if n < 0 || n > most {
			return false
		}
		most -= n
	}
	return true
}

func (m linear) valid(state []int64, farthest int64) bool {
	if m.unit == 1 {
		return len(state) == 1 && within(state[0], farthest)
	}
	return len(state) == 2 && within(state[0], farthest) && 0 <= state[1] && state[1] < m.unit
}

func (m fixedWindow) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest/m.width+1) && counts(state[1:], m.count)
}

func (m quotaReset) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest) && counts(state[1:], m.count)
}

func (m refillBucket) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest) && counts(state[1:], m.burst)
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

func (m slidingWindow) valid(state []int64, farthest int64) bool {
	return len(state) == 3 && within(state[0], farthest/m.width+1) && counts(state[1:2], m.count) && counts(state[2:], m.count)
}

func (m slidingBuckets) valid(state []int64, farthest int64) bool {
	return int64(len(state)) == m.cells+2 && within(state[0], (farthest/m.width+1)*m.cells) && counts(state[1:], m.count)
}

func (m hybrid) valid(state []int64, farthest int64) bool {
	switch {
	case len(state) != 3 || !within(state[1], farthest):
		return false
	case state[0] == bursty:
		return counts(state[2:], m.count)
	}
	return state[0] == smooth && 0 <= state[2] && state[2] < m.linear.unit
}

// A strict limit counts what it denies too, so that a rate may be far above it.
func (m exponential) valid(state []int64, farthest int64) bool {
	if len(state) != 2 || !within(state[0], farthest) {
		return false
	}
	rate := math.Float64frombits(uint64(state[1]))
	return rate >= 0 && !math.IsInf(rate, 1)
}
