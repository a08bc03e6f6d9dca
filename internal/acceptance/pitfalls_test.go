package acceptance_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
)

// The pitfalls of time and arithmetic that show at the limiter; those of a transition by itself are in package algorithm.

var background = context.Background()

// rate is the text of a limit of this count and period, which to a calendar is a day.
func rate(a weir.Algorithm, count, period string) string {
	switch a {
	case weir.Calendar:
		return count + "/day"
	case weir.Concurrent:
		return string(a) + " " + count + " lease=" + period
	}
	return string(a) + " " + count + "/" + period
}

// takeAt takes from the key "k", and fails the test if no decision can be made.
func takeAt(t *testing.T, l *weir.Limiter, cost int64, now time.Time) weir.Decision {
	t.Helper()
	d, err := l.TakeAt(background, "k", cost, now)
	if err != nil {
		t.Error(err)
	}
	return d
}

// together runs f in n goroutines and waits for them.
func together(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// T2: goroutines that read the clock before they get at the state must not mint what lies between their readings.
func TestPitfallT2ClockReadBeforeTheState(t *testing.T) {
	start := time.Now()
	l := newLimiter(t, "200000/1s burst=1")
	const enough = 50_000 // of 5 µs each
	var admitted atomic.Int64
	together(8, func(int) {
		for admitted.Load() < enough {
			if d, err := l.Take(background, "k", 1); err != nil {
				t.Error(err)
				return
			} else if d.Allowed {
				admitted.Add(1)
			}
		}
	})
	took := time.Since(start)
	if n, most := admitted.Load(), int64(took/(5*time.Microsecond))+1; n > most {
		t.Errorf("%d admitted in %v, want up to %d", n, took, most)
	}
}

// T3: a caller whose wall clock is set back an hour in the middle of use gets nothing more, loses no state, and goes on as before
// when the clock is right again. (Take reads the store's clock, which is never set: then there is nothing to notice.)
func TestPitfallT3CallersClockStepsBack(t *testing.T) {
	for _, a := range algorithm.All() {
		l := newLimiter(t, rate(a, "4", "1s"))
		now := time.Unix(1_790_000_000, 0)
		if a == weir.Calendar {
			now = time.Unix(1_790_035_199, 0) // a second before a day begins
		}
		capacity := takeAt(t, l, 1, now).Limit
		takeAt(t, l, capacity-1, now)
		if d := takeAt(t, l, 1, now.Add(-time.Hour)); d.Allowed || d.Remaining != 0 {
			t.Errorf("%s: an hour back: %+v", a, d)
		}
		again := now.Add(time.Millisecond)
		if d := takeAt(t, l, 1, again); d.Allowed || d.RetryAfter > 2*time.Second {
			t.Errorf("%s: after the step: %+v", a, d)
		} else if d = takeAt(t, l, 1, again.Add(d.RetryAfter)); !d.Allowed {
			t.Errorf("%s: after the wait: %+v", a, d)
		}
	}
}

// T7: A reads the time in one window, B takes in the next, and then A takes at its time. What B took stays taken, and so does what A
// took: neither opens a window of its own.
func TestPitfallT7BoundaryInterleave(t *testing.T) {
	for _, a := range algorithm.All() {
		if a == weir.MinInterval {
			continue // one unit at a time: there is nothing to interleave
		}
		l := newLimiter(t, rate(a, "10", "10s"))
		edge := time.Unix(1_790_000_000, 0)
		read := edge.Add(-time.Nanosecond) // A
		takeAt(t, l, 3, edge)              // B
		left := takeAt(t, l, 1, read).Remaining
		d := takeAt(t, l, 0, edge)
		if want := d.Limit - 4; left > want || d.Remaining != want {
			t.Errorf("%s: %d left, then %d; want %d", a, left, d.Remaining, want)
		}
	}
}

// T7, with goroutines: half of them always read the time before the edge. No more than both windows' worth is admitted,
// and no more than one after the edge.
func TestPitfallT7BoundaryUnderConcurrency(t *testing.T) {
	for _, a := range []weir.Algorithm{weir.FixedWindow, weir.QuotaReset, weir.SlidingLog, weir.SlidingWindow, weir.SlidingBuckets} {
		l := newLimiter(t, string(a)+" 1000/10s")
		edge := time.Unix(1_790_000_000, 0)
		var before, after atomic.Int64
		together(8, func(i int) {
			now, admitted := edge, &after
			if i%2 == 0 {
				now, admitted = edge.Add(-time.Nanosecond), &before
			}
			for range 500 {
				if takeAt(t, l, 1, now).Allowed {
					admitted.Add(1)
				}
			}
		})
		n, most := before.Load()+after.Load(), int64(1000)
		if a == weir.FixedWindow {
			most = 2000 // the edge lies between them
		}
		if n < 1000 || n > most || after.Load() > 1000 {
			t.Errorf("%s: %d admitted before the edge and %d after, at most %d together", a, before.Load(), after.Load(), most)
		}
		if d := takeAt(t, l, 1, edge); d.Allowed {
			t.Errorf("%s: one more after %d: %+v", a, n, d)
		}
	}
}

// A3: a limit that is nothing, or no number, is an error when the limiter is built.
func TestPitfallA3BadLimit(t *testing.T) {
	for _, limit := range []weir.Limit{
		{}, {Count: 1}, {Period: time.Second}, {Count: -1, Period: time.Second}, {Count: 1, Period: -1},
		{Count: 1, Period: time.Second, Burst: -1},
	} {
		var refused *weir.LimitError
		if l, err := weir.New(limit); l != nil || !errors.As(err, &refused) {
			t.Errorf("%+v: %v, %v", limit, l, err)
		}
	}
}

// A6: a negative cost is an error for every operation, and changes nothing.
func TestPitfallA6NegativeCost(t *testing.T) {
	l, now := newLimiter(t, "10/1s"), time.Unix(0, 0)
	takeAt(t, l, 10, now)
	for _, cost := range []int64{-1, -5, math.MinInt64} {
		_, takeErr := l.TakeAt(background, "k", cost, now)
		_, _, upToErr := l.TakeUpToAt(background, "k", cost, now)
		_, refundErr := l.RefundAt(background, "k", cost, now)
		_, manyErr := l.TakeManyAt(background, []weir.Request{{Key: "k", Cost: 0}, {Key: "k", Cost: cost}}, now, nil)
		_, clockErr := l.Take(background, "k", cost)
		for _, err := range []error{takeErr, upToErr, refundErr, manyErr, clockErr} {
			var refused *weir.CostError
			if !errors.As(err, &refused) || refused.Cost != cost {
				t.Errorf("cost %d: %v", cost, err)
			}
		}
	}
	if d := takeAt(t, l, 0, now); d.Remaining != 0 {
		t.Errorf("%+v", d)
	}
}

// A8: above capacity the wait is Never, which is neither none nor negative; what remains is told, also by TakeUpTo.
func TestPitfallA8NeverIsItsOwnValue(t *testing.T) {
	l, now := newLimiter(t, "10/1s"), time.Unix(0, 0)
	takeAt(t, l, 4, now)
	if d := takeAt(t, l, 11, now); d.Allowed || d.RetryAfter != weir.Never || d.Remaining != 6 || d.ResetAfter != 400*time.Millisecond {
		t.Errorf("%+v", d)
	}
	granted, d, err := l.TakeUpToAt(background, "k", math.MaxInt64, now)
	if err != nil || granted != 6 || !d.Allowed || d.Remaining != 0 {
		t.Errorf("up to everything: %d, %+v, %v", granted, d, err)
	}
}

// A10: 3.7 units are left: three are granted, and the fourth is there after 30 ms.
func TestPitfallA10PartialTake(t *testing.T) {
	l, start := newLimiter(t, "10/1s"), time.Unix(1_790_000_000, 0)
	takeAt(t, l, 10, start)
	now := start.Add(370 * time.Millisecond)
	if granted, d, err := l.TakeUpToAt(background, "k", 10, now); err != nil || granted != 3 || !d.Allowed {
		t.Errorf("%d, %+v, %v", granted, d, err)
	}
	if granted, d, err := l.TakeUpToAt(background, "k", 10, now); err != nil || granted != 0 || d.RetryAfter != 30*time.Millisecond {
		t.Errorf("then %d, %+v, %v", granted, d, err)
	}
}

// A time that nanoseconds since 1970 can't hold is an error, not a wrapped number.
func TestTimeOutOfRangeIsAnError(t *testing.T) {
	l := newLimiter(t, "10/1s")
	for _, now := range []time.Time{{}, time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0)} {
		if _, err := l.TakeAt(background, "k", 1, now); !errors.Is(err, weir.ErrTime) {
			t.Errorf("%v: %v", now, err)
		}
	}
}
