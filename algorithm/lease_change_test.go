package algorithm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// A holding is a place: its units, the end that its take reported, and the limit of that take.
type holding struct {
	units, end int64
	limit      *algorithm.Program
}

// TestLeaseLengthChanges compares an account whose leases change in length at any time with a list
// of places: each place is in use from its take to its release or to its end, as reported by the
// take. A Renew, under the first or any other limit, and a Cancel find the place. Heal, by a clock
// that goes forward, changes nothing.
func TestLeaseLengthChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(1, 5).Draw(t, "count")
		var limits []*algorithm.Program
		for _, lease := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 60), 1, 4, rapid.ID).Draw(t, "leases") {
			limits = append(limits, compile(t, algorithm.Limit{Algorithm: algorithm.Concurrent, Count: count, Period: time.Duration(lease)}))
		}
		var a algorithm.Account
		var places []holding
		p := limits[0]
		for now := int64(0); now < 300; now += rapid.Int64Range(0, 8).Draw(t, "gap") {
			places = slices.DeleteFunc(places, func(h holding) bool { return h.end <= now })
			var used int64
			for _, h := range places {
				used += h.units
			}
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				p = rapid.SampledFrom(limits).Draw(t, "limit")
			}
			if a.Heal(now) {
				t.Fatalf("healed at %d: %s %d; places: %v", now, a.Head(), a.State, places)
			}
			if read, err := algorithm.ReadHead(p, a.Head(), a.State); err != nil || read.Head() != a.Head() {
				t.Fatalf("%s %d: read as %s, error %v", a.Head(), a.State, read.Head(), err)
			}
			var r algorithm.Result
			switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
			case kind < 2 || len(places) == 0:
				cost := rapid.Int64Range(1, 3).Draw(t, "cost")
				if a, r = a.Apply(p, algorithm.Op{Cost: cost}, now); r.Allowed != (used+cost <= count) {
					t.Fatalf("%v at %d: %d of %d are used, and a take of %d is %+v", p.Limit(), now, used, count, cost, r)
				}
				if r.Allowed {
					places, used = append(places, holding{cost, now + int64(r.ResetAfter), p}), used+cost
				}
			default:
				i := rapid.IntRange(0, len(places)-1).Draw(t, "place")
				h := places[i]
				op := algorithm.Op{Kind: algorithm.Cancel, Cost: h.units, End: h.end}
				if kind > 2 {
					op.Kind = algorithm.Renew
				}
				under := rapid.SampledFrom([]*algorithm.Program{p, h.limit}).Draw(t, "under")
				if a, r = a.Apply(under, op, now); !r.Allowed || r.Granted != h.units {
					t.Fatalf("%v at %d: %+v of %v: %+v", under.Limit(), now, op, h, r)
				}
				places, used = slices.Delete(places, i, i+1), used-h.units
				if kind > 2 {
					places, used = append(places, holding{h.units, now + int64(r.ResetAfter), under}), used+h.units
				}
			}
			if r.Remaining != count-used {
				t.Fatalf("%v at %d: %+v, %d used: %v; %s %d", p.Limit(), now, r, used, places, a.Head(), a.State)
			}
		}
	})
}

// TestLeasesAndCountsChange adds changes of the count: places beyond the count are kept, and no take
// is admitted beyond the count of its limit.
func TestLeasesAndCountsChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var limits []*algorithm.Program
		for range 4 {
			limits = append(limits, compile(t, algorithm.Limit{
				Algorithm: algorithm.Concurrent, Count: rapid.Int64Range(1, 6).Draw(t, "count"),
				Period: time.Duration(rapid.Int64Range(1, 60).Draw(t, "lease")),
			}))
		}
		var a algorithm.Account
		var places []holding
		for now := int64(0); now < 300; now += rapid.Int64Range(0, 8).Draw(t, "gap") {
			places = slices.DeleteFunc(places, func(h holding) bool { return h.end <= now })
			var used int64
			for _, h := range places {
				used += h.units
			}
			p := rapid.SampledFrom(limits).Draw(t, "limit")
			var r algorithm.Result
			if kind := rapid.IntRange(0, 4).Draw(t, "kind"); kind < 2 || len(places) == 0 {
				if a, r = a.Apply(p, algorithm.Op{Cost: 1}, now); r.Allowed {
					if used++; used > p.Limit().Count {
						t.Fatalf("%v at %d: %d are used: %v", p.Limit(), now, used, places)
					}
					places = append(places, holding{1, now + int64(r.ResetAfter), p})
				}
			} else {
				i := rapid.IntRange(0, len(places)-1).Draw(t, "place")
				h := places[i]
				places = slices.Delete(places, i, i+1)
				a, _ = a.Apply(h.limit, algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: h.end}, now)
			}
		}
	})
}

// TestManyLeasesOutliveAChange: a denial of a lower limit leaves all leases.
func TestManyLeasesOutliveAChange(t *testing.T) {
	old, changed := compile(t, algorithm.MustParseLimit("concurrent 500 lease=10s")), compile(t, algorithm.MustParseLimit("concurrent 400 lease=1s"))
	var a algorithm.Account
	var ends []int64
	for now := range int64(500) {
		var r algorithm.Result
		a, r = a.Apply(old, algorithm.Op{Cost: 1}, now)
		ends = append(ends, now+int64(r.ResetAfter))
	}
	a, r := a.Apply(changed, algorithm.Op{Cost: 1}, 600)
	if want := ends[100] - 600; r.Allowed || int64(r.RetryAfter) != want {
		t.Errorf("%+v, want a wait of %d, until 101 leases are over", r, want)
	}
	a, _ = a.Apply(changed, algorithm.Op{Kind: algorithm.Refund, Cost: 0}, 600)
	for i, end := range ends {
		if a, r = a.Apply(old, algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end}, 700); r.Remaining != int64(i+1) {
			t.Fatalf("%d places are released, and %d remain", i+1, r.Remaining)
		}
	}
}
