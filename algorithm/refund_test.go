package algorithm_test

import (
	"slices"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// drive runs a trace over a program and returns the state that it leaves.
func drive(t *rapid.T, p *algorithm.Program, tr *trace) (state []int64) {
	for range rapid.IntRange(0, 12).Draw(t, "requests before") {
		now, cost := tr.next(t)
		var r algorithm.Result
		state, r = p.Apply(state, algorithm.Op{Cost: cost}, now)
		tr.last = r.Decision
	}
	return state
}

// TestTakeAndRefundAtOneInstantIsAsIfNothingHappened is promised where units leave no trace but themselves: not by
// quota-reset and hybrid, whose first unit starts a window, nor by exponential, whose units fade.
func TestTakeAndRefundAtOneInstantIsAsIfNothingHappened(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, false)
		untouched := drive(t, p, tr)
		now, cost := tr.next(t)
		state, r := p.Apply(slices.Clone(untouched), upTo(cost), now)
		state, _ = p.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: r.Granted}, now)
		for range steps {
			var got, want algorithm.Result
			state, got = p.Apply(state, algorithm.Op{Cost: cost}, now)
			untouched, want = p.Apply(untouched, algorithm.Op{Cost: cost}, now)
			if got != want {
				t.Fatalf("%v: cost %d at %d after take and refund of %d: %+v, without: %+v", l, cost, now, r.Granted, got, want)
			}
			tr.last = got.Decision
			now, cost = tr.next(t)
		}
	}, except(algorithm.QuotaReset, algorithm.Hybrid, algorithm.Exponential)...)
}

// TestTakeAndRefundGainNothing where they leave a trace: there is no more room than there was before.
func TestTakeAndRefundGainNothing(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		state := drive(t, p, tr)
		now, cost := tr.next(t)
		_, before := p.Apply(state, algorithm.Op{}, now)
		state, r := p.Apply(state, upTo(cost), now)
		_, after := p.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: r.Granted}, now)
		if after.Remaining-before.Remaining > slack(l) {
			t.Fatalf("%v: %d taken and given back at %d: %+v, then %+v", l, r.Granted, now, before, after)
		}
	}, algorithm.QuotaReset, algorithm.Hybrid, algorithm.Exponential)
}

// slack is by how many units a limit that computes in float64 may be off.
func slack(l algorithm.Limit) int64 {
	if l.Algorithm != algorithm.Exponential {
		return 0
	}
	return 1 + int64(float64(l.Count)*tolerance)
}

// TestRefundKeepsTheWindowOfQuotaReset gives the units back, and leaves the window where it started.
func TestRefundKeepsTheWindowOfQuotaReset(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p := compile(t, l)
		used := rapid.Int64Range(1, l.Capacity()).Draw(t, "used")
		state, taken := p.Apply(nil, algorithm.Op{Cost: used}, 0)
		now := rapid.Int64Range(0, int64(l.Period)-1).Draw(t, "now")
		_, back := p.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: used}, now)
		if back.Remaining != l.Capacity() || int64(back.ResetAfter) != int64(taken.ResetAfter)-now {
			t.Fatalf("%v: %+v, then refunded at %d: %+v", l, taken, now, back)
		}
	}, algorithm.QuotaReset, algorithm.Hybrid)
}

// TestRefundOfAllGivesAllBack, at any time while the units still count.
func TestRefundOfAllGivesAllBack(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, false)
		state, r := p.Apply(nil, algorithm.Op{Cost: l.Capacity()}, tr.now)
		now := within(tr.now + rapid.Int64Range(0, int64(r.ResetAfter)).Draw(t, "gap"))
		state, r = p.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: l.Capacity()}, now)
		if r.Remaining != l.Capacity() {
			t.Fatalf("%v: all taken at %d, all given back at %d: %+v, state %d", l, tr.now, now, r, state)
		}
	})
}

// TestRefundMakesRoomForNoMoreThanItGives, never above capacity, and never takes room away.
func TestRefundMakesRoomForNoMoreThanItGives(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		state := drive(t, p, tr)
		for range steps {
			now, cost := tr.next(t)
			_, before := p.Apply(state, algorithm.Op{}, now)
			var after algorithm.Result
			state, after = p.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: cost}, now)
			room := after.Remaining - before.Remaining
			if room < -slack(l) || room > cost && room-cost > slack(l) || after.Remaining > l.Capacity() {
				t.Fatalf("%v: refund of %d at %d: remaining from %d to %d", l, cost, now, before.Remaining, after.Remaining)
			}
			if !after.Allowed || after.Granted != 0 || after.RetryAfter != 0 {
				t.Fatalf("%v: refund of %d at %d: %+v", l, cost, now, after)
			}
			state, after = p.Apply(state, upTo(tr.cost(t)), now)
			tr.last = after.Decision
		}
	})
}
