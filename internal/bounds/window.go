package bounds

import (
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// Window returns the most units admitted under a limit in a window of its period at a cost of 1
// each, and the formula: q is the count, b the capacity. The window leaves out its last instant.
// For a leaky-queue they are the units with a slot in the window; for a calendar the window is
// shorter than each of its days, weeks, months or years; for concurrent no unit is released.
func Window(l algorithm.Limit) (units uint64, text string) {
	l = l.Canonical()
	s := size{q: l.Count, b: l.Capacity()}
	f := grid.halfOpen // of calendar, which has no claim
	for _, c := range claims() {
		if c.algorithm == l.Algorithm {
			f = c.bound.halfOpen // the last of several claims: the units that leave a queue
		}
	}
	if l.Algorithm == algorithm.RefillBucket && s.b < s.q { // a refill fills the bucket
		return uint64(2*s.b - 1), "2b−1"
	}
	return uint64(f.of(s)), f.text // below 2⁶⁴, so an overflow of int64 does no harm
}

// Words returns the most words of state, of 8 bytes each, for a key of a valid limit.
func Words(l algorithm.Limit) (int64, error) {
	program, err := algorithm.Compile(l, time.Nanosecond)
	if err != nil {
		return 0, err
	}
	if l.Algorithm == algorithm.SlidingLog || l.Algorithm == algorithm.Concurrent {
		return 2 * l.Count, nil
	}
	state, _ := program.Apply(nil, algorithm.Op{Cost: 1}, 0)
	return int64(len(state)), nil
}
