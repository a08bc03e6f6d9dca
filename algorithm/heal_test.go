package algorithm_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestHealLeavesWhatTheLimitMadeAlone: as long as time goes forward no state is too far ahead.
func TestHealLeavesWhatTheLimitMadeAlone(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, false)
		state := drive(t, p, tr)
		now, _ := tr.next(t)
		before := slices.Clone(state)
		if p.Heal(state, now) || !slices.Equal(state, before) {
			t.Fatalf("%v: healed %d to %d at %d", l, before, state, now)
		}
	})
}

// TestHealGivesNothingAway: a healed key has no more room than before, and is fresh again within the time that a limit
// takes from full debt. A key less than that ahead is left alone, so that a clock that stutters wipes no one's budget.
func TestHealGivesNothingAway(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		state := drive(t, p, tr)
		now, _ := tr.next(t)
		_, before := p.Apply(slices.Clone(state), algorithm.Op{}, now)
		healed := p.Heal(state, now)
		_, after := p.Apply(slices.Clone(state), algorithm.Op{}, now)
		longest := ownReset(t, l)
		switch {
		case !healed && after != before:
			t.Fatalf("%v: not healed at %d, but %+v became %+v", l, now, before, after)
		case !healed && l.Strict:
			return // hammering may have driven the rate to anything
		case !healed && slices.Contains(windowed, l.Algorithm):
			longest.Add(longest, longest)
		}
		if after.Remaining > before.Remaining || big.NewInt(int64(after.ResetAfter)).Cmp(longest) > 0 {
			t.Fatalf("%v: healed %v at %d: %+v to %+v; own reset %v", l, healed, now, before, after, longest)
		}
		if p.Heal(state, now) {
			t.Fatalf("%v: %d healed twice at %d", l, state, now)
		}
	})
}

// windowed are the algorithms whose states are healed when they are a whole window ahead.
var windowed = []algorithm.Algorithm{
	algorithm.RefillBucket, algorithm.FixedWindow, algorithm.QuotaReset, algorithm.SlidingLog,
	algorithm.SlidingWindow, algorithm.SlidingBuckets, algorithm.Exponential, algorithm.Calendar, algorithm.Concurrent,
}

// TestHealLeavesAStutterAlone: a clock that steps back by a nanosecond, over the edge of a window, uses up no one's quota.
func TestHealLeavesAStutterAlone(t *testing.T) {
	for _, text := range eachAlgorithm("10/10s") {
		p := play(t, text)
		if p.program.Limit().Capacity() == 1 {
			continue // full debt, and a nanosecond more: healed, and none the worse
		}
		taken := p.take(1, 10*sec)
		if p.program.Heal(p.state, 10*sec-1) {
			t.Errorf("%s: healed", text)
		}
		if r := p.take(0, 10*sec); r.Remaining != taken.Remaining {
			t.Errorf("%s: %+v, then %+v", text, taken, r)
		}
	}
}

// TestHealKnowsHowFarHybridReaches: a smooth key is up to two windows from fresh, and no more.
func TestHealKnowsHowFarHybridReaches(t *testing.T) {
	p := play(t, "hybrid 5/10s")
	p.take(1, 0)
	p.take(4, 0) // smooth, and to be full at 18 s
	if p.program.Heal(p.state, -2*sec) {
		t.Error("healed two windows ahead")
	}
	if !p.program.Heal(p.state, -2*sec-1) {
		t.Error("not healed beyond two windows")
	}
	if r := p.take(0, -2*sec-1); r.ResetAfter != 10*time.Second {
		t.Errorf("healed to %+v", r)
	}
}

// ownReset is the longest that a key can be away from fresh when time only goes forward.
func ownReset(t *rapid.T, l algorithm.Limit) *big.Int {
	l = l.Canonical()
	period := rat(int64(l.Period))
	switch l.Algorithm {
	case algorithm.FixedWindow, algorithm.QuotaReset, algorithm.SlidingLog, algorithm.Concurrent:
		return ceiling(period)
	case algorithm.Calendar:
		return ceiling(add(period, rat(int64(3*day)))) // of 31 days, in a leap year, and where clocks were set by a day
	case algorithm.SlidingWindow:
		return ceiling(add(period, period))
	case algorithm.Hybrid:
		return ceiling(add(add(period, period), rat(1))) // healed by whole nanoseconds
	case algorithm.SlidingBuckets:
		return ceiling(mul(period, big.NewRat(l.Cells+1, l.Cells)))
	case algorithm.RefillBucket:
		refills := ceiling(big.NewRat(l.Burst, l.Count))
		return refills.Mul(refills, big.NewInt(int64(l.Period)))
	case algorithm.Exponential:
		_, r := compile(t, l).Apply(nil, algorithm.Op{Cost: l.Count}, 0)
		return big.NewInt(int64(r.ResetAfter))
	}
	return ceiling(mul(rat(l.Capacity()), big.NewRat(int64(l.Period), l.Count)))
}
