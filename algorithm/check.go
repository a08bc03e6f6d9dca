package algorithm

import (
	"fmt"
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
