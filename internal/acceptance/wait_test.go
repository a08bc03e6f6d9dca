package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
)

func newLimiter(t testing.TB, text string) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestWaitEndsWhenTheLimitAdmits(t *testing.T) {
	limits := map[string]time.Duration{ // the time at which the fourth unit passes
		"2/1s": time.Second, "min-interval 2/1s": 1500 * time.Millisecond, "quota-reset 2/1s": time.Second,
		"sliding-log 2/1s": time.Second, "leaky-queue 2/1s": 1500 * time.Millisecond, "refill-bucket 1/1s burst=2": 2 * time.Second,
	}
	for text, want := range limits {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimiter(t, text), time.Now()
				for range 4 {
					if err := l.Wait(t.Context(), "k", 1); err != nil {
						t.Fatal(err)
					}
				}
				if got := time.Since(start); got != want {
					t.Errorf("four units took %v, want %v", got, want)
				}
			})
		})
	}
}

// A limit begins with its burst, also for Wait. With burst=1 requests are spaced from the first on.
func TestWaitBeginsWithTheBurst(t *testing.T) {
	for text, want := range map[string]time.Duration{"10/1s": 0, "10/1s burst=1": 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l, start := newLimiter(t, text), time.Now()
			for range 10 {
				if err := l.Wait(t.Context(), "k", 1); err != nil {
					t.Fatal(err)
				}
			}
			if got := time.Since(start); got != want {
				t.Errorf("%s: ten requests took %v, want %v", text, got, want)
			}
		})
	}
}

func TestWaitersGoFirstInFirstOut(t *testing.T) {
	for _, text := range []string{"1/1s", "leaky-queue 1/1s queue=3", "fixed-window 1/1s"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, text)
				var mu sync.Mutex
				var order []int
				var wg sync.WaitGroup
				for i := range 20 {
					wg.Go(func() {
						if err := l.Wait(t.Context(), "k", 1); err != nil {
							t.Error(err)
						}
						mu.Lock()
						order = append(order, i)
						mu.Unlock()
					})
					synctest.Wait() // to keep their order
				}
				wg.Wait()
				if !slices.IsSorted(order) {
					t.Errorf("went in order %v", order)
				}
			})
		})
	}
}

// TestPitfallW2HopelessDeadline: a wait that would outlast the deadline returns at once, says so, and takes nothing.
func TestPitfallW2HopelessDeadline(t *testing.T) {
	for _, text := range []string{"1/5s", "fixed-window 1/5s", "sliding-log 1/5s", "leaky-queue 1/5s queue=5", "hybrid 1/5s"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimiter(t, text), time.Now()
				if err := l.Wait(t.Context(), "k", 1); err != nil {
					t.Fatal(err)
				}
				before, _ := l.Peek(t.Context(), "k")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := l.Wait(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want context.DeadlineExceeded", err)
				}
				if time.Since(start) != 0 {
					t.Errorf("returned after %v, want at once", time.Since(start))
				}
				if after, _ := l.Peek(t.Context(), "k"); after != before {
					t.Errorf("the wait changed %+v to %+v", before, after)
				}
			})
		})
	}
}

// TestHopelessBehindOthers: those ahead in line count for whether a deadline can be kept.
func TestHopelessBehindOthers(t *testing.T) {
	for _, text := range []string{"1/1s", "fixed-window 1/1s", "leaky-queue 1/1s queue=1"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimiter(t, text), time.Now()
				for range 6 { // the last of them passes at 5s
					go l.Wait(t.Context(), "k", 1)
					synctest.Wait()
				}
				early, cancel := context.WithTimeout(t.Context(), 5900*time.Millisecond)
				defer cancel()
				if err := l.Wait(early, "k", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
					t.Errorf("got %v after %v, want DeadlineExceeded at once", err, time.Since(start))
				}
				enough, cancel := context.WithTimeout(t.Context(), 6*time.Second+time.Millisecond)
				defer cancel()
				if err := l.Wait(enough, "k", 1); err != nil || time.Since(start) != 6*time.Second {
					t.Errorf("got %v after %v, want none after 6s", err, time.Since(start))
				}
			})
		})
	}
}

// TestCancelledWaiterGivesItsPlaceOn: those behind one who gives up move up by its place.
func TestCancelledWaiterGivesItsPlaceOn(t *testing.T) {
	for _, text := range []string{"1/1s", "leaky-queue 1/1s queue=9", "sliding-log 1/1s"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimiter(t, text), time.Now()
				passed := make([]time.Duration, 5)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for i := range passed {
					wg.Go(func() {
						use := t.Context()
						if i == 2 {
							use = ctx
						}
						if err := l.Wait(use, "k", 1); err != nil {
							passed[i] = -1
							return
						}
						passed[i] = time.Since(start)
					})
					synctest.Wait()
				}
				time.Sleep(500 * time.Millisecond)
				cancel()
				wg.Wait()
				if want := []time.Duration{0, time.Second, -1, 2 * time.Second, 3 * time.Second}; !slices.Equal(passed, want) {
					t.Errorf("passed at %v, want %v", passed, want)
				}
				if d, _ := l.Peek(t.Context(), "k"); d.ResetAfter != time.Second {
					t.Errorf("the key pays for %v more, want 1s: the place at the end was not given back", d.ResetAfter)
				}
			})
		})
	}
}

// TestPlaceInUseByOthersIsNotGivenBack: the end of the queue goes back to the store only if it is still the end, so
// that no two requests ever leave at one time.
func TestPlaceInUseByOthersIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "leaky-queue 1/1s queue=9")
		take := func() time.Duration {
			d, err := l.Take(t.Context(), "k", 1)
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			return d.Delay
		}
		take()
		r, err := l.Reserve(t.Context(), "k", 1) // 1s
		if err != nil || r.Delay != time.Second {
			t.Fatal(r, err)
		}
		if got := take(); got != 2*time.Second {
			t.Fatal(got)
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := take(); got != 3*time.Second {
			t.Errorf("the next turn is at %v, want 3s: at 2s somebody else leaves", got)
		}
	})
}

func TestReserveCancelGivesBackOnce(t *testing.T) {
	for _, text := range []string{"3/1h", "fixed-window 3/1h", "sliding-log 3/1h", "hybrid 3/1h", "leaky-queue 1/1h queue=2"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, text)
				if d, err := l.Take(t.Context(), "k", 1); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				before, _ := l.Peek(t.Context(), "k")
				r, err := l.Reserve(t.Context(), "k", 1)
				if err != nil || !r.Allowed {
					t.Fatal(r, err)
				}
				for range 3 {
					if err := r.Cancel(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if after, _ := l.Peek(t.Context(), "k"); after != before {
					t.Errorf("left %+v, want %+v", after, before)
				}
			})
		})
	}
}

// TestCancelAfterResetMintsNothing: units that came back by themselves are not given back again.
func TestCancelAfterResetMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "fixed-window 2/1s")
		r, _ := l.Reserve(t.Context(), "k", 1)
		time.Sleep(time.Second)
		for range 2 {
			l.Take(t.Context(), "k", 1)
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Take(t.Context(), "k", 1); d.Allowed {
			t.Error("a cancelled reservation of an earlier window freed a unit of this one")
		}
	})
}

// TestRefundWakesTheFirstInLine: whoever waits does not sleep on when units come back through the same limiter.
func TestRefundWakesTheFirstInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLimiter(t, "1/1h"), time.Now()
		l.Take(t.Context(), "k", 1)
		done := make(chan error)
		go func() { done <- l.Wait(t.Context(), "k", 1) }()
		time.Sleep(time.Minute)
		l.Refund(t.Context(), "k", 1)
		if err := <-done; err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v, want none after 1m", err, time.Since(start))
		}
	})
}

// TestPitfallS20CancelledContext: a request whose context has ended takes nothing.
func TestPitfallS20CancelledContext(t *testing.T) {
	l := newLimiter(t, "1/1h")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Take(ctx, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Take: %v", err)
	}
	if err := l.Wait(ctx, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := l.Reserve(ctx, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Reserve: %v", err)
	}
	if d, _ := l.Peek(t.Context(), "k"); d.Remaining != 1 {
		t.Errorf("%+v", d)
	}
}

func TestWaitRefusesWhatNeverPasses(t *testing.T) {
	l := newLimiter(t, "2/1s")
	var capacity *weir.CapacityError
	if err := l.Wait(t.Context(), "k", 3); !errors.As(err, &capacity) || capacity.Capacity != 2 {
		t.Errorf("cost 3: %v", err)
	}
	var cost *weir.CostError
	if err := l.Wait(t.Context(), "k", -1); !errors.As(err, &cost) {
		t.Errorf("cost −1: %v", err)
	}
	if err := l.Wait(t.Context(), "k", 0); err != nil {
		t.Errorf("cost 0: %v", err)
	}
}

// TestWaitersUnderFire: many wait, some give up, and no more pass than the limit admits.
func TestWaitersUnderFire(t *testing.T) {
	for _, text := range []string{"10/1s", "leaky-queue 10/1s queue=20"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, start := newLimiter(t, text), time.Now()
				var mu sync.Mutex
				var passed []time.Duration
				var wg sync.WaitGroup
				for i := range 200 {
					wg.Go(func() {
						time.Sleep(time.Duration(i*7%100) * 10 * time.Millisecond)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if i%3 == 0 {
							time.AfterFunc(time.Duration(i*13%500)*10*time.Millisecond, cancel)
						}
						if l.Wait(ctx, "k", 1) == nil {
							mu.Lock()
							passed = append(passed, time.Since(start))
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				slices.Sort(passed)
				if len(passed) < 133 {
					t.Errorf("%d passed, want at least the 133 that never give up", len(passed))
				}
				burst := int64(10)
				if text != "10/1s" {
					burst = 1
				}
				for i := range passed {
					for j := i; j < len(passed); j++ {
						most := burst + int64((passed[j]-passed[i])/(100*time.Millisecond))
						if n := int64(j - i + 1); n > most {
							t.Fatalf("%d passed from %v to %v, want at most %d", n, passed[i], passed[j], most)
						}
					}
				}
			})
		})
	}
}
