package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestMicrosecondsAgreeWithNanoseconds gives both programs of a limit a trace of whole microseconds. Waits are then
// those of the nanosecond program, rounded up.
func TestMicrosecondsAgreeWithNanoseconds(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		longest := time.Duration(1 << 50)
		if l.Algorithm == algorithm.Exponential {
			longest = 1 << 36 // so that 128 periods of nanoseconds are whole numbers to a float64
		}
		if l.Unit == "" {
			l.Period = max(1, l.Period%longest) * 1000 // whole microseconds
		}
		micro, err := algorithm.Compile(l, time.Microsecond)
		if err != nil || !compiles(l) {
			return // longer by a thousand, or not exact in microseconds
		}
		nano, tr := compile(t, l), newTrace(t, l, true)
		var states [2][]int64
		for range steps {
			_, cost := tr.next(t)
			tr.now -= tr.now % 1000
			op := algorithm.Op{Kind: anyKind(t), Cost: cost}
			var got, want algorithm.Result
			states[0], got = micro.Apply(states[0], op, tr.now/1000)
			states[1], want = nano.Apply(states[1], op, tr.now)
			for _, d := range []*time.Duration{&want.RetryAfter, &want.ResetAfter, &want.Delay} {
				*d = roundUp(*d)
			}
			if got != want {
				t.Fatalf("%v: %+v at %d: in microseconds %+v, in nanoseconds %+v", l, op, tr.now, got, want)
			}
			tr.last = got.Decision
		}
	})
}

func roundUp(d time.Duration) time.Duration {
	if d == algorithm.Never || d%1000 == 0 {
		return d
	}
	return d - d%1000 + 1000
}
