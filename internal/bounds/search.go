package bounds

import (
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A search finds the most that a limit admits, over every arrival pattern on a grid of one nanosecond.
//
// It walks states, not patterns: of all patterns that lead to the same state at the same time it keeps the one
// that had most admitted. Nothing is lost by that, since what a program does next depends on nothing else.
type search struct {
	program *algorithm.Program
	width   int64 // the limit's period, in ticks
	largest int64 // requests cost 1 to this
	history int64 // periods of traffic before the window in which units are counted
}

func newSearch(text string) (search, error) {
	limit, err := algorithm.ParseLimit(text)
	if err != nil {
		return search{}, err
	}
	program, err := algorithm.Compile(limit, time.Nanosecond)
	return search{program: program, width: int64(limit.Period), largest: 1, history: 3}, err
}

// most returns, for each length up to the longest, the most units in any closed window [t, t+length], with requests
// of cost 1 to largest. A half-open window of w ticks is the closed one of length w−1.
func (s search) most(largest int64, released bool, longest int64) []int64 {
	s.largest = largest
	if released {
		return s.released(longest)
	}
	return s.admitted(longest)
}

// admitted counts a unit when it is admitted.
func (s search) admitted(longest int64) []int64 {
	most := make([]int64, longest+1)
	for start, reached := range s.reached((s.history + 1) * s.width) {
		if int64(start) < s.history*s.width {
			continue // the last period has every phase
		}
		for length := range most {
			reached = s.tick(reached, int64(start+length), always)
			most[length] = max(most[length], reached.most())
		}
	}
	return most
}

// released counts a unit when its turn comes, for a queue: at now + Delay.
func (s search) released(longest int64) []int64 {
	most := make([]int64, longest+1)
	layers := s.reached((s.history + 1) * s.width)
	longestDelay := s.program.Limit().Capacity() * s.width / s.program.Limit().Count
	for start := s.history * s.width; start < int64(len(layers)); start++ {
		for length := range most {
			end := start + int64(length)
			inside := func(release int64) bool { return start <= release && release <= end }
			from := start - longestDelay
			now := layers[from]
			for t := from; t <= end; t++ {
				now = s.tick(now, t, inside)
			}
			most[length] = max(most[length], now.most())
		}
	}
	return most
}

func always(int64) bool { return true }
func never(int64) bool  { return false }

// reached returns, for each tick before the end, the states in which its requests may find a key.
func (s search) reached(end int64) []states {
	layers := []states{{"": 0}}
	for t := range end - 1 {
		layers = append(layers, s.tick(layers[t], t, never))
	}
	return layers
}

// tick returns the states after any number of requests at t. A request's units are counted if its turn counts.
func (s search) tick(from states, t int64, counts func(turn int64) bool) states {
	next, todo := states{}, []string(nil)
	add := func(state []int64, units int64) {
		if s.program.Fresh(state, t) {
			state = nil // a store forgets it
		}
		k := pack(state)
		if best, found := next[k]; !found || units > best {
			next[k] = units
			todo = append(todo, k)
		}
	}
	for k, units := range from {
		add(unpack(k), units)
	}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		units := next[k]
		for cost := int64(1); cost <= s.largest; cost++ {
			state, r := s.program.Apply(unpack(k), algorithm.Op{Cost: cost}, t)
			switch {
			case !r.Allowed:
			case counts(t + int64(r.Delay)):
				add(state, units+cost)
			default:
				add(state, units)
			}
		}
	}
	if s.program.Limit().Algorithm == algorithm.Exponential {
		return undominated(next)
	}
	return next
}
