package swap_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

const ms = time.Millisecond

// slow returns a store on an engine each of whose steps takes 10 ms.
func slow() (*shelf, *swap.Store) {
	engine := newShelf()
	engine.delay = 10 * ms
	return engine, swap.New(engine, swap.Options{})
}

// Pitfall S22, on the compare-and-swap of a process: 400 at once need two flights, the first one's and that of all others.
func TestS22HotKeyIsASwapForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		b := bind(t, s, "1000/1h")
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 400 {
			wg.Go(func() {
				if v, err := take(b, "k", 1); err != nil || v.Granted != 1 {
					t.Error(v, err)
				}
			})
			if i == 0 {
				synctest.Wait() // its flight has left alone
			}
		}
		wg.Wait()
		if engine.loads != 2 || engine.swaps != 2 || time.Since(began) != 40*ms {
			t.Errorf("%d loads, %d swaps, %v; want 2, 2, 40ms", engine.loads, engine.swaps, time.Since(began))
		}
		if v, err := take(b, "k", 0); err != nil || v.Remaining != 600 {
			t.Errorf("%+v, %v: want 600 remaining", v, err)
		}
		if engine.swaps != 2 || s.Counts() != (store.Counts{}) {
			t.Errorf("a peek swapped, or something was counted: %d, %+v", engine.swaps, s.Counts())
		}
	})
}

func TestCallsAreCarriedOutInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := slow()
		b := bind(t, s, "100/1h")
		var wg sync.WaitGroup
		for i := range int64(50) {
			wg.Go(func() {
				if v, err := take(b, "k", 1); err != nil || v.Remaining != 99-i {
					t.Errorf("call %d: %+v, %v", i, v, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// Pitfall S23.
func TestS23SlowEngineHoldsUpNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		engine.delay = 100 * ms
		b := bind(t, s, "10/1h")
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := take(b, string(rune('a'+i)), 1); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took >= 300*ms {
			t.Errorf("took %v, want less than 300ms", took)
		}
	})
}

// Pitfall S19: a peek whose flight loses a swap to another process takes nothing.
func TestS19PeekUnderContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		b := bind(t, s, "10/1h")
		lost := false
		engine.during = func(string) (bool, error) {
			defer func() { lost = true }()
			return !lost, nil
		}
		var wg sync.WaitGroup
		for _, cost := range []int64{3, 0, 0} {
			wg.Go(func() {
				if v, err := take(b, "k", cost); err != nil || v.Granted != cost || v.Remaining != 7 {
					t.Errorf("cost %d: %+v, %v", cost, v, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if v, err := take(b, "k", 0); err != nil || v.Remaining != 7 {
			t.Errorf("%+v, %v: want 7 remaining", v, err)
		}
		if c := s.Counts().Conflicts; c != 1 {
			t.Errorf("%d conflicts were counted, want 1", c)
		}
	})
}

// Pitfall S4: a denial is free, also of writes.
func TestS4DenialIsFree(t *testing.T) {
	engine := newShelf()
	b := bind(t, swap.New(engine, swap.Options{}), "10/1h")
	for _, step := range []struct{ cost, granted, remaining int64 }{{8, 8, 2}, {5, -1, 2}, {0, 0, 2}, {11, -1, 2}, {2, 2, 0}} {
		v, err := take(b, "k", step.cost)
		if err != nil || v.Granted != step.granted || v.Remaining != step.remaining {
			t.Errorf("%+v: %+v, %v", step, v, err)
		}
	}
	if engine.swaps != 2 {
		t.Errorf("%d swaps, want 2", engine.swaps)
	}
}

// Pitfall S20, on a store: what was given up before it was on its way is not charged, and holds up nobody.
func TestS20GivenUpInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := slow()
		b := bind(t, s, "10/1h")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Do(ended, "k", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.Canceled) || !errors.Is(err, swap.ErrNothingDone) {
			t.Errorf("a context that had ended: %v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = take(b, "k", 1) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		wg.Go(func() {
			began := time.Now()
			_, err := b.Do(ctx, "k", algorithm.Op{Cost: 2}, store.OwnClock)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, swap.ErrNothingDone) || time.Since(began) != 5*ms {
				t.Errorf("given up in the queue: %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := take(b, "k", 4); err != nil || v.Remaining != 5 {
				t.Errorf("behind the one given up: %+v, %v", v, err)
			}
		})
		wg.Wait()
		if f := s.Counts().Failures; f != 0 {
			t.Errorf("%d failures of the engine were counted", f)
		}
	})
}

// A caller that gives up in flight has its answer at once; the others of the flight theirs when it lands. Before the swap
// is sent the operation can still be left out.
func TestGivenUpInFlight(t *testing.T) {
	for after, remaining := range map[time.Duration]int64{25 * ms: 5, 35 * ms: 3} { // the second flight loads from 20 to 30, and swaps until 40
		synctest.Test(t, func(t *testing.T) {
			_, s := slow()
			b := bind(t, s, "10/1h")
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = take(b, "k", 1) })
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			wg.Go(func() {
				began := time.Now()
				_, err := b.Do(ctx, "k", algorithm.Op{Cost: 2}, store.OwnClock)
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, swap.ErrNothingDone) || time.Since(began) != after {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if !strings.Contains(err.Error(), "unknown") {
					t.Errorf("%v: does not say that it is unknown", err)
				}
			})
			synctest.Wait()
			wg.Go(func() {
				if v, err := take(b, "k", 4); err != nil || v.Remaining != remaining {
					t.Errorf("beside the one given up after %v: %+v, %v", after, v, err)
				}
			})
			wg.Wait()
		})
	}
}

// What was given up while a swap was lost is not applied again.
func TestGivenUpAfterALostSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		b := bind(t, s, "10/1h")
		lose := true
		engine.during = func(string) (bool, error) { return lose, nil }
		ctx, cancel := context.WithTimeout(t.Context(), 15*ms)
		defer cancel()
		if _, err := b.Do(ctx, "k", algorithm.Op{Cost: 2}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		v, err := take(b, "k", 0)
		if lose = false; err != nil || v.Remaining != 10 || engine.swaps != 0 {
			t.Errorf("%+v, %v, %d swaps: want nothing taken", v, err, engine.swaps)
		}
	})
}

func TestErrorsOfTheEngineEndTheirFlightOnly(t *testing.T) {
	broken := errors.New("broken")
	for _, step := range []string{"load", "swap"} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, s := slow()
				b := bind(t, s, "10/1h")
				flights := 0
				fail := func(name string) error {
					if strings.Contains(name, "{k}") {
						if flights++; flights == 2 {
							return broken
						}
					}
					return nil
				}
				if step == "load" {
					engine.before = fail
				} else {
					engine.during = func(name string) (bool, error) { return false, fail(name) }
				}
				var wg sync.WaitGroup
				var failed atomic.Int64
				for range 1 + 5 { // the first flight has one, the second five
					wg.Go(func() {
						_, err := take(b, "k", 1)
						if err == nil {
							return
						}
						failed.Add(1)
						if !errors.Is(err, broken) || errors.Is(err, swap.ErrNothingDone) != (step == "load") {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				wg.Go(func() {
					if _, err := take(b, "other", 1); err != nil {
						t.Error("another key:", err)
					}
				})
				wg.Wait()
				if v, err := take(b, "k", 0); err != nil || v.Remaining != 9 || failed.Load() != 5 || s.Counts().Failures != 5 {
					t.Errorf("%+v, %v, %d failed, %+v", v, err, failed.Load(), s.Counts())
				}
			})
		})
	}
}

// An engine that does not answer holds callers up for the timeout, queueing included, and the next find it again.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		engine.delay = time.Hour
		b := bind(t, s, "10/1h")
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				began := time.Now()
				_, err := take(b, "k", 1)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
					t.Errorf("call %d: %v after %v", i, err, time.Since(began))
				}
			})
			synctest.Wait()
			time.Sleep(50 * ms)
		}
		wg.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		engine.delay = ms
		if v, err := take(b, "k", 0); err != nil || v.Remaining != 10 || s.Counts().Failures != 20 {
			t.Errorf("%+v, %v, %+v", v, err, s.Counts())
		}
	})
}

// A swap that never succeeds is tried until the time is over, no longer, and not without pause.
func TestLostSwapsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newShelf()
		engine.during = func(string) (bool, error) { return true, nil }
		s := swap.New(engine, swap.Options{Timeout: 500 * ms})
		b, began := bind(t, s, "10/1h"), time.Now()
		if _, err := take(b, "k", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 500*ms {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if c := s.Counts().Conflicts; c < 100 || c > 5000 {
			t.Errorf("%d attempts in half a second with an engine that takes no time", c)
		}
	})
}

// Several processes hammer one key: nobody starves, and exactly the capacity is admitted.
func TestProcessesShareAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes, goroutines, each = 8, 20, 25
		engine := newShelf()
		engine.before = func(string) error { time.Sleep(rand.N(2 * ms)); return nil }
		engine.during = func(string) (bool, error) { time.Sleep(rand.N(2 * ms)); return false, nil }
		var wg sync.WaitGroup
		var admitted, conflicts atomic.Int64
		var longest time.Duration
		var mu sync.Mutex
		for range processes {
			s := swap.New(engine, swap.Options{})
			b := bind(t, s, "3000/1000h")
			wg.Go(func() {
				var ours sync.WaitGroup
				for range goroutines {
					ours.Go(func() {
						for range each {
							began := time.Now()
							v, err := take(b, "k", 1)
							if err != nil {
								t.Error(err)
							}
							admitted.Add(max(0, v.Granted))
							mu.Lock()
							longest = max(longest, time.Since(began))
							mu.Unlock()
						}
					})
				}
				ours.Wait()
				conflicts.Add(s.Counts().Conflicts)
			})
		}
		wg.Wait()
		if admitted.Load() != 3000 || conflicts.Load() == 0 {
			t.Errorf("%d were admitted, want 3000; %d conflicts", admitted.Load(), conflicts.Load())
		}
		t.Logf("%d conflicts, the longest took %v", conflicts.Load(), longest)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := slow()
		b := bind(t, s, "10/1h")
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, err := take(b, "k", 1); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) != 40*ms {
			t.Errorf("%v after %v, want the 40ms of two flights", err, time.Since(began))
		}
		wg.Wait()
		if _, err := take(b, "k", 1); !errors.Is(err, swap.ErrClosed) || !errors.Is(err, swap.ErrNothingDone) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A panic in a flight reaches each caller, which can recover. The name stays usable.
func TestFlightPanicsInTheCallers(t *testing.T) {
	engine := newShelf()
	s := swap.New(engine, swap.Options{})
	b := bind(t, s, "10/1h")
	engine.before = func(string) error { panic("broken engine") }
	func() {
		defer func() {
			p, ok := recover().(*panics.Error)
			if !ok || p.Value != "broken engine" || !strings.Contains(string(p.Stack), "round_test.go") {
				t.Errorf("recovered %v; want the panic of the engine with its stack", p)
			}
		}()
		v, err := take(b, "k", 1)
		t.Errorf("no panic, but %+v, %v", v, err)
	}()
	engine.before = nil
	if v, err := take(b, "k", 1); err != nil || v.Remaining != 9 {
		t.Errorf("after the panic: %+v, %v; want 9 remaining", v, err)
	}
}
