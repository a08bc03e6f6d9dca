package algorithm_test

import (
	"math/big"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

func TestBoundHoldsInEveryWindow(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) { checkBound(t, l, false) })
}

// Time is then the newest time at which anything was admitted, for that is all a state knows of it.
func TestBoundHoldsInEveryWindowWhenTimeStepsBack(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) { checkBound(t, l, true) })
}

// TestFullDemandMeetsTheBoundOfTheLinearFamily keeps the bounds honest: they are reached, not only kept.
func TestFullDemandMeetsTheBoundOfTheLinearFamily(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		tr, p := newTrace(t, l, false), compile(t, l)
		state, r := p.Apply(nil, upTo(l.Capacity()), tr.now)
		admitted, start := rat(r.Granted), tr.now
		for range steps {
			// Never so long that the bucket is full, which would lose what drips in after.
			gap := min(int64(r.ResetAfter), l.Capacity()*int64(l.Period)/l.Count) - 1
			if gap < 1 || tr.now > algorithm.MaxTime-gap {
				return
			}
			tr.now += rapid.Int64Range(1, gap).Draw(t, "gap")
			state, r = p.Apply(state, upTo(l.Capacity()), tr.now)
			admitted.Add(admitted, rat(r.Granted))
			if most, _ := bound(l.Canonical(), tr.now-start); admitted.Cmp(most) != 0 {
				t.Fatalf("%v after %d ns: %v admitted, want %v", l, tr.now-start, admitted, most)
			}
		}
	}, algorithm.TokenBucket, algorithm.Cooldown, algorithm.LeakyQueue)
}

func upTo(cost int64) algorithm.Op { return algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost} }

func checkBound(t *rapid.T, l algorithm.Limit, rewind bool) {
	tr, p := newTrace(t, l, rewind), compile(t, l)
	var state []int64
	var admitted journal
	for range steps {
		now, cost := tr.next(t)
		var r algorithm.Result
		state, r = p.Apply(state, algorithm.Op{Cost: cost}, now)
		tr.last = r.Decision
		if r.Granted > 0 {
			admitted.note(admitted.newest(now), r.Granted)
		}
	}
	for i := range admitted {
		total := new(big.Rat)
		for _, e := range admitted[i:] {
			total.Add(total, rat(e.cost))
			from, to := admitted[i].at, e.at
			if most, stated := boundBetween(l.Canonical(), from, to); stated && less(most, total) {
				t.Fatalf("%v units within %d ns, more than %v", total, to-from, most)
			}
		}
	}
}

// boundBetween is the most that a limit may admit from one time to another: of a calendar's, its count in each of its windows.
func boundBetween(l algorithm.Limit, from, to int64) (units *big.Rat, stated bool) {
	if l.Unit == "" {
		return bound(l, to-from)
	}
	windows := int64(0)
	for c := newCivil(l); from <= to && windows < 100; windows++ {
		_, from = c.window(from)
	}
	return mul(rat(l.Count), rat(windows)), windows < 100
}

// bound is the most that a limit may admit in a closed window of this many nanoseconds, which is a half-open one
// of a nanosecond more. stated is false for spans of which the reference says nothing.
func bound(l algorithm.Limit, span int64) (units *big.Rat, stated bool) {
	q, period := rat(l.Count), int64(l.Period)
	twice := add(q, q)
	switch l.Algorithm {
	case algorithm.FixedWindow:
		windows := ceiling(big.NewRat(span, period))
		return mul(q, new(big.Rat).SetInt(windows.Add(windows, big.NewInt(1)))), true
	case algorithm.RefillBucket:
		refills := new(big.Rat).SetInt(ceiling(big.NewRat(span, period)))
		return add(rat(l.Burst), mul(q, refills)), true
	case algorithm.QuotaReset, algorithm.Hybrid:
		if span == period {
			return twice, true // of hybrid only because one request may take the whole quota
		}
		return sub(twice, rat(1)), span < period
	case algorithm.SlidingLog, algorithm.Concurrent:
		if span == period {
			return twice, true
		}
		return q, span < period
	case algorithm.SlidingWindow:
		return sub(twice, rat(1)), span <= period
	case algorithm.SlidingBuckets:
		return q, span <= period
	case algorithm.Exponential:
		return twice, span <= period
	}
	units = mul(rat(span), new(big.Rat).SetFrac64(l.Count, period))
	whole := new(big.Int).Div(units.Num(), units.Denom())
	return add(rat(l.Capacity()), new(big.Rat).SetInt(whole)), true
}
