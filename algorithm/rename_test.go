package algorithm_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestLinearFamilyIsOneUnderItsNames gives the same trace to a limit and to the gcra that it is.
func TestLinearFamilyIsOneUnderItsNames(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		twin := algorithm.Limit{Algorithm: algorithm.GCRA, Count: l.Count, Period: l.Period, Burst: l.Capacity()}
		a, b := compile(t, l), compile(t, twin)
		tr := newTrace(t, l, true)
		var mine, its []int64
		for range steps {
			now, cost := tr.next(t)
			op := algorithm.Op{Kind: anyKind(t), Cost: cost}
			_, before := b.Apply(its, algorithm.Op{}, now)
			var got, want algorithm.Result
			mine, got = a.Apply(mine, op, now)
			its, want = b.Apply(its, op, now)
			want.Delay = wantDelay(l, op, want, before)
			if got != want {
				t.Fatalf("%v: %+v at %d: %+v, but as gcra %+v", l, op, now, got, want)
			}
			tr.last = got.Decision
		}
	}, algorithm.TokenBucket, algorithm.LeakyBucket, algorithm.Cooldown, algorithm.MinInterval, algorithm.LeakyQueue)
}

// wantDelay is, for a queue that took something, what was still owed before.
func wantDelay(l algorithm.Limit, op algorithm.Op, r, before algorithm.Result) time.Duration {
	took := op.Kind == algorithm.Take || op.Kind == algorithm.TakeUpTo
	if l.Algorithm == algorithm.LeakyQueue && took && r.Granted > 0 {
		return before.ResetAfter
	}
	return 0
}

// anyKind draws a take mostly.
func anyKind(t *rapid.T) algorithm.Kind {
	return rapid.SampledFrom([]algorithm.Kind{
		algorithm.Take, algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Reset,
	}).Draw(t, "kind")
}

// TestLeakyQueueDelaysAtMostItsQueue: no one who is let in waits longer than the whole queue takes.
func TestLeakyQueueDelaysAtMostItsQueue(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		longest := ceiling(mul(rat(l.Canonical().Queue), newModel(l).(*shaper).interval))
		var state []int64
		for range steps {
			now, cost := tr.next(t)
			var r algorithm.Result
			state, r = p.Apply(state, algorithm.Op{Cost: cost}, now)
			if r.Delay < 0 || longest.IsInt64() && int64(r.Delay) > longest.Int64() || r.Delay == math.MaxInt64 {
				t.Fatalf("%v: %+v, longest wait %v", l, r, longest)
			}
			tr.last = r.Decision
		}
	}, algorithm.LeakyQueue)
}
