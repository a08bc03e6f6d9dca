package algorithm_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

func TestEveryStateThatIsMadeIsValid(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		for _, tick := range []time.Duration{time.Nanosecond, time.Microsecond} {
			p, err := algorithm.Compile(l, tick)
			if err != nil {
				continue
			}
			tr, state := newTrace(t, l, true), []int64(nil)
			for range steps {
				now, cost := tr.next(t)
				op := algorithm.Op{Kind: anyKind(t), Cost: cost, End: now / int64(tick)}
				var r algorithm.Result
				state, r = p.Apply(state, op, now/int64(tick))
				tr.last = r.Decision
				if err := p.Check(state); err != nil {
					t.Fatalf("%v after %+v at %d: %v", l, op, now, err)
				}
			}
		}
	})
}

func TestStatesOfAnotherFormAreNone(t *testing.T) {
	const far = math.MaxInt64
	inf, nan := int64(math.Float64bits(math.Inf(1))), int64(math.Float64bits(math.NaN()))
	negative := -1.0
	minus := int64(math.Float64bits(negative))
	for text, states := range map[string][][]int64{
		"10/1s":                  {{far}, {-far}, {1, 2}},
		"7/1s":                   {{1}, {1, 7}, {1, -1}, {far, 0}, {1, 2, 3}},
		"refill-bucket 10/1s":    {{1}, {1, 11}, {1, -1}, {far, 1}, {1, 2, 3}},
		"fixed-window 10/1s":     {{1}, {1, 11}, {1, -1}, {far, 1}, {1, 2, 3}},
		"quota-reset 10/1s":      {{1}, {1, 11}, {1, -1}, {far, 1}, {1, 2, 3}},
		"sliding-log 10/1s":      {{1}, {1, 0}, {1, 11}, {1, 6, 2, 5}, {2, 1, 1, 1}, {far, 1}, {1, 1, 2}},
		"sliding-window 10/1s":   {{1}, {1, 2}, {1, 11, 0}, {1, 0, 11}, {1, -1, 0}, {far, 0, 0}, {1, 2, 3, 4}},
		"sliding-buckets 10/1s":  {{1}, make([]int64, 61), append(make([]int64, 61), 11), make([]int64, 63)},
		"hybrid 10/1s":           {{0, 1}, {2, 1, 1}, {0, 1, 11}, {1, 1, 1}, {0, far, 1}, {1, 1, -1}, {0, 1, 1, 1}},
		"10/day":                 {{1}, {1, 11}, {1, -1}, {far, 1}, {1, 2, 3}},
		"concurrent 10 lease=1s": {{1}, {1, 0}, {1, 11}, {2, 1, 1, 1}, {far, 1}},
		"exponential 10/1s":      {{1}, {1, inf}, {1, nan}, {1, minus}, {far, 0}, {1, 0, 0}},
	} {
		p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range states {
			if p.Check(state) == nil {
				t.Errorf("%s: %v passes", text, state)
			}
		}
		if err := p.Check(nil); err != nil {
			t.Errorf("%s: the empty state: %v", text, err)
		}
	}
}
