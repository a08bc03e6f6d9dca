package latency_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/latency"
)

// A bucket has the durations up to its bound, and not beyond.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		durations := rapid.SliceOf(rapid.OneOf(rapid.Int64Range(-1, 1<<36), rapid.Map(rapid.Int64Range(0, 36), func(n int64) int64 { return 1<<n + n%3 - 1 }))).Draw(t, "durations")
		var h latency.Histogram
		var sum float64
		for _, d := range durations {
			h.Observe(time.Duration(d), 2)
			sum += 2 * time.Duration(max(0, d)).Seconds()
		}
		s := h.Snapshot()
		if s.Count != 2*uint64(len(durations)) || math.Abs(s.Seconds-sum) > 1e-6 {
			t.Fatalf("%d durations with a sum of %v s, want %d and %v", s.Count, s.Seconds, 2*len(durations), sum)
		}
		if len(s.Buckets) != 24 {
			t.Fatalf("%d buckets", len(s.Buckets))
		}
		for bound, got := range s.Buckets {
			var want uint64
			for _, d := range durations {
				if time.Duration(d).Seconds() <= bound {
					want += 2
				}
			}
			if got != want {
				t.Fatalf("%d durations up to %v s, want %d", got, bound, want)
			}
		}
	})
}

func TestHistogramOfManyGoroutines(t *testing.T) {
	var h latency.Histogram
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				h.Observe(time.Millisecond, 3)
			}
		})
	}
	all.Wait()
	if s := h.Snapshot(); s.Count != 24_000 || math.Abs(s.Seconds-24) > 1e-9 {
		t.Errorf("%d durations with a sum of %v s", s.Count, s.Seconds)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d latency.Decisions
		var b latency.Batch
		began := time.Now()
		d.Observe(&b, began) // nothing
		for range 3 {
			b.Add(latency.Of(algorithm.Op{Kind: algorithm.Take, Cost: 1}), 1)
		}
		b.Add(latency.Of(algorithm.Op{Kind: algorithm.Take}), 1)
		time.Sleep(time.Second)
		d.Observe(&b, began)
		d.Observe(&b, began) // it is empty again
		for o, want := range map[latency.Operation]uint64{latency.Take: 3, latency.Peek: 1, latency.Refund: 0} {
			if s := d[o].Snapshot(); s.Count != want || s.Seconds != float64(want) {
				t.Errorf("%v: %d of %v s, want %d of a second each", o, s.Count, s.Seconds, want)
			}
		}
	})
}

// Every kind of operation has a name in the metrics, and no two have one.
func TestOperationsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for o := range latency.Operations {
		if o.String() == "" || seen[o.String()] {
			t.Errorf("operation %d is %q", o, o)
		}
		seen[o.String()] = true
	}
	for kind, want := range map[algorithm.Kind]latency.Operation{
		algorithm.Take: latency.Take, algorithm.TakeUpTo: latency.TakeUpTo, algorithm.Refund: latency.Refund, algorithm.Cancel: latency.Cancel,
		algorithm.Renew: latency.Renew, algorithm.Reserve: latency.Reserve, algorithm.Commit: latency.Commit, algorithm.Reset: latency.Reset,
	} {
		if got := latency.Of(algorithm.Op{Kind: kind, Cost: 1}); got != want {
			t.Errorf("kind %d is %v, want %v", kind, got, want)
		}
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var d latency.Decisions
	var b latency.Batch
	began := time.Now()
	if n := testing.AllocsPerRun(100, func() { b.Add(latency.Take, 64); d.Observe(&b, began) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
