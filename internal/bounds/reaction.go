package bounds

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// speeds are the clients whose reaction time is measured: their rate in tenths of the limit's.
var speeds = []int64{11, 20, 100}

// The limit that reactions are measured at. Its period is a whole number of every client's intervals.
const (
	reactionCount  = 100
	reactionPeriod = 11 * time.Second
)

// reaction returns the most units that a client gets from a fresh key before its first denial. It asks for one
// unit at a time, evenly spaced, and may start at any multiple of its interval after a whole period.
func reaction(name algorithm.Algorithm, tenths int64) (int64, error) {
	limit := algorithm.Limit{Algorithm: name, Count: reactionCount, Period: reactionPeriod}
	program, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		return 0, err
	}
	gap := int64(reactionPeriod) * 10 / (reactionCount * tenths)
	most := int64(0)
	for phase := int64(0); phase < int64(reactionPeriod); phase += gap {
		n, err := beforeDenial(program, phase, gap)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// beforeDenial counts the requests admitted before the first denial. A client above the limit gets one.
func beforeDenial(program *algorithm.Program, start, gap int64) (int64, error) {
	const most = 1000 * reactionCount
	var state []int64
	var r algorithm.Result
	for n := range int64(most) {
		if state, r = program.Apply(state, algorithm.Op{Cost: 1}, start+n*gap); !r.Allowed {
			return n, nil
		}
	}
	return 0, fmt.Errorf("bounds: %v admits a client of one request each %dns for ever", program.Limit(), gap)
}

// words returns the most words of state that a key of the limit has, under a client that takes what it can at
// ten times the limit.
func words(limit algorithm.Limit) (int, error) {
	program, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		return 0, err
	}
	var state []int64
	most := 0
	gap := int64(limit.Period) / (limit.Count * 10)
	for now := int64(0); now < 3*int64(limit.Period); now += gap {
		state, _ = program.Apply(state, algorithm.Op{Cost: 1}, now)
		most = max(most, len(state))
	}
	return most, nil
}
