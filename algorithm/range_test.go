package algorithm_test

import (
	"slices"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestAnythingWithinTheRangesIsAnswered throws every operation, every cost and every time at every limit. No product and no
// sum may overflow: a wrapped one shows as a negative wait or an impossible number, or panics.
func TestAnythingWithinTheRangesIsAnswered(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		var state []int64
		for range 2 * steps {
			now, cost := tr.next(t)
			if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
				now = rapid.SampledFrom([]int64{-algorithm.MaxTime, algorithm.MaxTime, 0}).Draw(t, "edge")
				tr.now = now
			}
			if rapid.IntRange(0, 9).Draw(t, "heal") == 0 {
				p.Heal(state, now)
			}
			before := slices.Clone(state)
			var r algorithm.Result
			op := algorithm.Op{Kind: anyKind(t), Cost: cost}
			state, r = p.Apply(state, op, now)
			checkSane(t, l, op, r, before)
			if p.Fresh(state, now) != (r.ResetAfter == 0) {
				t.Fatalf("%v: %+v, but fresh is %v", l, r, p.Fresh(state, now))
			}
			tr.last = r.Decision
		}
	})
}

func checkSane(t *rapid.T, l algorithm.Limit, op algorithm.Op, r algorithm.Result, before []int64) {
	sane := r.Remaining >= 0 && r.Remaining <= l.Capacity() && r.Limit == l.Capacity() &&
		r.RetryAfter >= 0 && (r.RetryAfter > 0) != r.Allowed && r.ResetAfter >= 0 && r.Delay >= 0 &&
		r.Granted >= 0 && r.Granted <= op.Cost
	if !sane {
		t.Fatalf("%v: %+v on state %d: %+v", l, op, before, r)
	}
}
