package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// Turns of a leaky-queue that are still waited for when its limit changes.

// W3: a turn that came earlier, though later than the store's state has it, has all its time, also when nobody waits any more.
func TestPitfallW3TheLastTurnHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := limiter(t, "leaky-queue 6/1m queue=9", weir.WithName("plan")), newCrowd(6)
		for i := range 3 { // at 0, 10 and 20 s
			queued.wait(t.Context(), l, i, 1)
		}
		time.Sleep(time.Second)
		setLimit(t, l, "leaky-queue 1/1m queue=20")
		queued.wait(t.Context(), l, 3, 1) // at 175 s, and then a sixth of what is left of that
		setLimit(t, l, "leaky-queue 6/1m queue=9")
		time.Sleep(39 * time.Second)
		queued.wait(t.Context(), l, 4, 1) // the state had the slow pace up to now: 195 s are left, which become a sixth
		queued.wait(t.Context(), l, 5, 1)
		queued.group.Wait()
		for i, want := range scaled([]int64{0, 10_000, 20_000, 30_000, 72_500, 82_500}, time.Millisecond) {
			if queued.errs[i] != nil || queued.passed[i] != want {
				t.Errorf("%d: %v at %v, want it to pass at %v", i, queued.errs[i], queued.passed[i], want)
			}
		}
	})
}

// W3: a turn that waits at a slow pace right behind those of a fast one, and becomes fast, does not come before the one ahead has had its time, be that one waited for, or started.
func TestPitfallW3NoneOvertakesTheTurnAhead(t *testing.T) {
	for _, back := range []time.Duration{63 * time.Second, 195 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, queued := limiter(t, "leaky-queue 6/1m queue=30", weir.WithName("plan")), newCrowd(22)
			for i := range 20 { // the last at 190 s
				queued.wait(t.Context(), l, i, 1)
			}
			setLimit(t, l, "leaky-queue 1/1m queue=1") // which knows of two of them
			queued.wait(t.Context(), l, 20, 1)         // admitted at 60 s, for 120 s
			time.Sleep(back)
			setLimit(t, l, "leaky-queue 6/1m queue=30")
			queued.wait(t.Context(), l, 21, 1)
			queued.group.Wait()
			for i, at := range queued.passed {
				want := time.Duration(i) * 10 * time.Second
				if i >= 20 && back > time.Minute*3 { // the state had the slow pace until then
					want += 25 * time.Second / 6
				}
				if at.Truncate(time.Millisecond) != want.Truncate(time.Millisecond) || queued.errs[i] != nil {
					t.Errorf("back after %v: %d: %v at %v, want it to pass at %v", back, i, queued.errs[i], at, want)
				}
			}
		})
	}
}

// W3: the time that the last turn has is that of the next limit, if that is faster.
func TestPitfallW3TheLastTurnsTimeGetsShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := limiter(t, "leaky-queue 2/1h queue=9", weir.WithName("plan")), newCrowd(3)
		setLimit(t, l, "leaky-queue 1/1h queue=9")
		queued.wait(t.Context(), l, 0, 1)
		queued.wait(t.Context(), l, 1, 1) // at 1 h
		time.Sleep(time.Hour + time.Second)
		setLimit(t, l, "leaky-queue 1/1m queue=9")
		queued.wait(t.Context(), l, 2, 1)
		queued.group.Wait()
		if after := queued.passed[2] - queued.passed[1]; queued.errs[2] != nil || after < time.Minute || after > time.Minute+time.Second {
			t.Errorf("passed at %v; errors %v", queued.passed, queued.errs)
		}
	})
}

// W3: a queue that is waited for when another algorithm takes its place is hastened to the rate of that, and who comes then goes behind it.
func TestPitfallW3QueueToAnotherAlgorithm(t *testing.T) {
	for _, next := range []string{"1000/1s", "gcra 1000/1s", "leaky-bucket 1000/1s", "fixed-window 1000/1s", "sliding-window 1000/1s", "quota-reset 1000/1s", "exponential 1000/1s"} {
		synctest.Test(t, func(t *testing.T) {
			l, queued := limiter(t, "leaky-queue 1/1h queue=9", weir.WithName("plan")), newCrowd(6)
			for i := range 4 { // at 0, 1, 2 and 3 h
				queued.wait(t.Context(), l, i, 1)
			}
			time.Sleep(time.Second)
			setLimit(t, l, next)
			queued.wait(t.Context(), l, 4, 1)
			queued.wait(t.Context(), l, 5, 1)
			queued.group.Wait()
			for i, want := range scaled([]int64{0, 1_000_999_723, 1_001_999_723, 1_002_999_723, 1_003_999_723, 1_003_999_723}, 1) { // of the first hour a 3600th had passed
				if queued.errs[i] != nil || queued.passed[i] != want {
					t.Errorf("%s: %d: %v at %v, want it to pass at %v", next, i, queued.errs[i], queued.passed[i], want)
				}
			}
		})
	}
}

// TestWhoGivesUpBehindAQueueGivesBack: what a bucket admitted, and what then waits behind the queue that it took the place of, is given back if it gives up, or if it would
// be too late.
func TestWhoGivesUpBehindAQueueGivesBack(t *testing.T) {
	for i, next := range []string{"10/24h", "fixed-window 10/240000h", "sliding-log 10/24h", "10/24h", "fixed-window 10/240000h", "sliding-log 10/24h"} {
		synctest.Test(t, func(t *testing.T) {
			var s store.Store = memory.New(memory.Options{})
			if i >= 3 {
				s = &hooked{Store: s} // which does not tell the time
			}
			l, queued := limiter(t, "leaky-queue 1/1m queue=9", weir.WithName("plan"), weir.WithStore(s)), newCrowd(6)
			for i := range 3 { // the last at 2 m
				queued.wait(t.Context(), l, i, 1)
			}
			time.Sleep(time.Second)
			setLimit(t, l, next)
			before := left(t, l)
			ctx, cancel := context.WithCancel(t.Context())
			queued.wait(ctx, l, 3, 1)
			queued.wait(until(t, time.Minute), l, 4, 2)
			queued.wait(t.Context(), l, 5, 1)
			if left(t, l) != before-2 || !errors.Is(queued.errs[4], context.DeadlineExceeded) || queued.passed[4] != time.Second {
				t.Errorf("%s: %d left, want %d; the one that is too late: %v at %v", next, left(t, l), before-2, queued.errs[4], queued.passed[4])
			}
			cancel()
			synctest.Wait()
			if left(t, l) != before-1 || !errors.Is(queued.errs[3], context.Canceled) {
				t.Errorf("%s: %d left, want %d; the one that gave up: %v", next, left(t, l), before-1, queued.errs[3])
			}
			queued.group.Wait()
			if queued.errs[5] != nil || queued.passed[5] != 3*time.Minute {
				t.Errorf("%s: %v at %v, want it to pass at 3m", next, queued.errs[5], queued.passed[5])
			}
		})
	}
}

// TestQueueToLeases: who takes a lease when turns of a queue are still waited for does not wait for those.
func TestQueueToLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := limiter(t, "leaky-queue 1/1m queue=9", weir.WithName("plan")), newCrowd(2)
		queued.wait(t.Context(), l, 0, 1)
		queued.wait(t.Context(), l, 1, 1)
		setLimit(t, l, "concurrent 6 lease=1h")
		if lease, err := l.Acquire(t.Context(), "k", 1); err != nil || time.Since(queued.start) != 0 || lease.Release(t.Context()) != nil {
			t.Errorf("acquired after %v: %v", time.Since(queued.start), err)
		}
		queued.group.Wait()
		if want := scaled([]int64{0, 60}, time.Second); !slices.Equal(queued.passed, want) {
			t.Errorf("passed at %v, want %v; errors %v", queued.passed, want, queued.errs)
		}
	})
}

// TestATurnThatHasStartedIsNotGivenBack: its time is used, up to its end.
func TestATurnThatHasStartedIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "leaky-queue 1/1m queue=9")
		takes(t, l, 1)
		r, err := l.Reserve(t.Context(), "k", 1)
		if err != nil || r.Delay != time.Minute {
			t.Fatal(r, err)
		}
		time.Sleep(90 * time.Second)
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Peek(t.Context(), "k"); err != nil || d.ResetAfter != 30*time.Second {
			t.Errorf("%+v, %v; want it to be fresh in 30 s", d, err)
		}
	})
}

// TestPlacesAreOfOneSize: a place that is given up is no place for a request of another cost.
func TestPlacesAreOfOneSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := newLimiter(t, "leaky-queue 1/1s queue=9"), newCrowd(4)
		ctx, cancel := context.WithCancel(t.Context())
		queued.wait(t.Context(), l, 0, 1)
		queued.wait(ctx, l, 1, 1)
		queued.wait(t.Context(), l, 2, 3)
		queued.wait(t.Context(), l, 3, 1)
		cancel()
		queued.group.Wait()
		if queued.passed[2] != 2*time.Second || queued.passed[3] != 5*time.Second {
			t.Errorf("passed at %v, want 2s and 5s for the last two; errors %v", queued.passed, queued.errs)
		}
	})
}

// TestSetLimitToTheSameAsksNothing: whoever waits is not woken.
func TestSetLimitToTheSameAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hooked{Store: memory.New(memory.Options{})}
		l, queued := limiter(t, "1/1m", weir.WithName("plan"), weir.WithStore(s)), newCrowd(1)
		takes(t, l, 1)
		queued.wait(t.Context(), l, 0, 1)
		s.after.set(func() { t.Error("the store was asked") })
		setLimit(t, l, "token-bucket 1/60s burst=1")
		synctest.Wait()
		s.after.set(func() {})
		queued.group.Wait()
	})
}

// TestTurnsAreForgotten: of keys for which nobody waits any more nothing is left in the limiter, also when its limit has changed.
func TestTurnsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "leaky-queue 1/1s queue=9", weir.WithName("plan"), weir.WithStore(memory.New(memory.Options{MaxKeys: 1000})))
		setLimit(t, l, "leaky-queue 2/1s queue=9")
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		for i := range 100 {
			var waiting sync.WaitGroup
			for j := range 200 {
				waiting.Go(func() {
					for range 2 {
						if err := l.Wait(t.Context(), fmt.Sprint(i, "/", j), 1); err != nil {
							t.Error(err)
						}
					}
				})
			}
			waiting.Wait()
		}
		time.Sleep(time.Minute)
		if after := heap(); after > before+1<<20 {
			t.Errorf("the heap has grown by %d bytes", after-before)
		}
		runtime.KeepAlive(l)
	})
}
