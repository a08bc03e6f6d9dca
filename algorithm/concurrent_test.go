package algorithm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// A holder has a lease of some units.
type holder struct{ end, units int64 }

// TestConcurrentHoldsNoMoreThanItsCount, against a list of holders: units are in flight until they are released or their lease ends. Holders that renew in
// time keep theirs.
func TestConcurrentHoldsNoMoreThanItsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count, lease := rapid.Int64Range(1, 6).Draw(t, "count"), rapid.Int64Range(1, 20).Draw(t, "lease")
		p := compile(t, algorithm.Limit{Algorithm: algorithm.Concurrent, Count: count, Period: time.Duration(lease)})
		var a algorithm.Account
		var holders []holder
		inFlight := func() (units int64) {
			for _, h := range holders {
				units += h.units
			}
			return units
		}
		for now := int64(0); now < 100; now += rapid.Int64Range(0, 4).Draw(t, "gap") {
			holders = slices.DeleteFunc(holders, func(h holder) bool { return h.end <= now })
			var r algorithm.Result
			cost, before := rapid.Int64Range(1, 3).Draw(t, "cost"), inFlight()
			switch kind := rapid.IntRange(0, 5).Draw(t, "what"); {
			case kind < 2 || len(holders) == 0:
				if a, r = a.Apply(p, algorithm.Op{Cost: cost}, now); r.Allowed != (before+cost <= count) {
					t.Fatalf("%v: %d more of %d at %d: %+v", p.Limit(), cost, before, now, r)
				}
				if r.Allowed {
					holders = append(holders, holder{now + int64(r.ResetAfter), cost})
				}
			case kind == 2: // of one that is over, or never was
				a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Cancel, Cost: cost, End: now - rapid.Int64Range(0, 30).Draw(t, "over for")}, now)
			default:
				i := rapid.IntRange(0, len(holders)-1).Draw(t, "holder")
				h := holders[i]
				holders = slices.Delete(holders, i, i+1)
				op := algorithm.Op{Kind: algorithm.Cancel, Cost: h.units, End: h.end}
				if kind > 3 {
					op.Kind = algorithm.Renew
				}
				if a, r = a.Apply(p, op, now); !r.Allowed {
					t.Fatalf("%v: %+v at %d: %+v", p.Limit(), op, now, r)
				}
				if kind > 3 {
					holders = append(holders, holder{now + int64(r.ResetAfter), h.units})
				}
			}
			if r.Remaining != count-inFlight() || inFlight() > count {
				t.Fatalf("%v at %d: %+v, %v in flight; %d", p.Limit(), now, r, holders, a.State)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	p := play(t, "concurrent 3 lease=10s")
	first := p.take(1, 0)
	p.take(1, 0) // another of the same instant
	p.take(1, 4*sec)
	if r := p.take(1, 4*sec); r.Allowed || r.RetryAfter != 6*time.Second {
		t.Errorf("full: %+v", r)
	}
	end := int64(first.ResetAfter)
	if r := p.apply(algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end}, 5*sec); r.Remaining != 1 || r.Granted != 1 {
		t.Errorf("released: %+v", r)
	}
	if r := p.apply(algorithm.Op{Kind: algorithm.Renew, Cost: 1, End: end}, 6*sec); !r.Allowed || r.Remaining != 1 || r.ResetAfter != 10*time.Second {
		t.Errorf("renewed: %+v", r)
	}
	if r := p.apply(algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end}, 7*sec); r.Remaining != 1 || r.Granted != 0 {
		t.Errorf("released what was renewed: %+v", r)
	}
	if r := p.take(0, 14*sec); r.Remaining != 2 || r.ResetAfter != 2*time.Second {
		t.Errorf("when one is over: %+v", r)
	}
	if r := p.apply(algorithm.Op{Kind: algorithm.Renew, Cost: 1, End: 14 * sec}, 15*sec); !r.Allowed || r.Remaining != 1 {
		t.Errorf("a renewal that comes too late is a take: %+v", r)
	}
	p.take(1, 15*sec)
	if r := p.apply(algorithm.Op{Kind: algorithm.Renew, Cost: 1, End: 14 * sec}, 15*sec); r.Allowed || r.RetryAfter != time.Second {
		t.Errorf("and is denied where there is no room: %+v", r)
	}
}

// Time that steps back neither ends a lease nor keeps it for ever, and a lease taken then is released by the end that it was told.
func TestConcurrentWhenTimeStepsBack(t *testing.T) {
	p := play(t, "concurrent 2 lease=10s")
	p.take(1, 100*sec)
	r := p.take(1, 95*sec)
	if !r.Allowed || r.ResetAfter != 15*time.Second {
		t.Errorf("%+v", r)
	}
	if r = p.apply(algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: 95*sec + int64(r.ResetAfter)}, 96*sec); r.Remaining != 1 {
		t.Errorf("released: %+v", r)
	}
	if r = p.take(0, 110*sec); r.Remaining != 2 {
		t.Errorf("all over: %+v", r)
	}
}

// Leases keep their ends when the count changes, and when leases get longer.
func TestLeasesOutliveAChange(t *testing.T) {
	for _, next := range []string{"concurrent 5 lease=10s", "concurrent 1 lease=10s", "concurrent 2 lease=1m"} {
		old, changed := compile(t, algorithm.MustParseLimit("concurrent 2 lease=10s")), compile(t, algorithm.MustParseLimit(next))
		var a algorithm.Account
		a, _ = a.Apply(old, algorithm.Op{Cost: 1}, 0)
		a, r := a.Apply(old, algorithm.Op{Cost: 1}, 2*sec)
		end := 2*sec + int64(r.ResetAfter)
		capacity := changed.Limit().Capacity()
		if _, r = a.Apply(changed, algorithm.Op{}, 3*sec); r.Remaining != max(0, capacity-2) || r.ResetAfter != 9*time.Second {
			t.Errorf("%s: %+v", next, r)
		}
		a, r = a.Apply(changed, algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end}, 3*sec)
		if want := max(0, capacity-1); r.Remaining != want && capacity > 1 {
			t.Errorf("%s, released: %+v, want %d left", next, r, want)
		}
		if _, r = a.Apply(changed, algorithm.Op{}, 12*sec); r.Remaining != capacity {
			t.Errorf("%s, all over: %+v", next, r)
		}
	}
}
