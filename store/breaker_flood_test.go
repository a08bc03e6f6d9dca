package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// abort begins a call each half millisecond, until d is over or the circuit is open. The callers cancel
// their calls after wait.
func abort(t *testing.T, b *store.Breaker, binding store.Binding, d, wait time.Duration) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	for began := time.Now(); time.Since(began) < d && b.State().Position == store.Closed; {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(wait, cancel)
			_, err := binding.Do(ctx, "n:a", algorithm.Op{Cost: 1}, store.OwnClock)
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnavailable) {
				t.Error(err)
			}
		})
		time.Sleep(500 * time.Microsecond)
	}
}

// Callers that abort all their calls do not open the circuit of an engine that is slow but serves,
// with and without other callers.
func TestBreakerOnAFloodOfAbortedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		others bool
		wait   time.Duration
	}{
		"alone":        {false, time.Millisecond},
		"among others": {true, time.Millisecond},
		"late":         {false, 899 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFakeEngine()
				e.latency = 900 * time.Millisecond
				b, binding := e.breaker(t, store.BreakerOptions{})
				defer b.Close()
				var wg sync.WaitGroup
				stop := make(chan struct{})
				if c.others {
					wg.Go(func() {
						for {
							select {
							case <-stop:
								return
							default:
							}
							if err := take(binding, "n:b"); err != nil {
								t.Error(err)
							}
						}
					})
				}
				abort(t, b, binding, 3*time.Second, c.wait)
				close(stop)
				wg.Wait()
				var counts store.Counts
				if b.Count(&counts); counts.Opened != 0 || counts.Refused != 0 || counts.Overflows != 0 {
					t.Errorf("%+v", counts)
				}
				if probes := e.probes.Load(); probes == 0 || probes > 5 {
					t.Errorf("%d checks in three seconds, each of 0.9 s", probes)
				}
			})
		})
	}
}

// The circuit of an engine that hangs opens although all callers abort their calls.
func TestBreakerOnAbortedCallsOfAHungEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		abort(t, b, binding, 250*time.Millisecond, time.Millisecond) // checks succeed
		e.hang("n")
		began := time.Now()
		abort(t, b, binding, time.Minute, time.Millisecond)
		if d := time.Since(began); d < time.Second || d > 1110*time.Millisecond {
			t.Errorf("the circuit opened after %v", d)
		}
	})
}

// Callers whose deadline is the timeout of the breaker open the circuit of a hung engine as others do.
func TestBreakerOnDeadlinesLikeTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.hang("n")
		ctx, cancel := context.WithTimeout(t.Context(), store.DefaultTimeout)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			time.Sleep(time.Millisecond)
			wg.Go(func() { _, _ = binding.Do(ctx, "n:a", algorithm.Op{Cost: 1}, store.OwnClock) })
		}
		wg.Wait()
		refused(t, binding, "n:a")
	})
}

// A single call that times out causes a check, so that one slow key opens no circuit, call by call.
func TestBreakerOnASlowKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		e.slowKeys["n:slow"] = true
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		for range 20 {
			if err := take(binding, "n:slow"); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if s := b.State(); s.Position != store.Closed || !s.Since.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}

// A full queue is no failure of the engine, whether the engine answers or hangs.
func TestBreakerOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		e.latency = 900 * time.Millisecond
		b, binding := e.breaker(t, store.BreakerOptions{MaxCalls: 10})
		defer b.Close()
		full := func() {
			t.Helper()
			var wg sync.WaitGroup
			defer wg.Wait()
			for range 10 {
				wg.Go(func() { _ = take(binding, "n:a") })
			}
			for range 9 {
				time.Sleep(99 * time.Millisecond)
				err := take(binding, "n:b")
				if !errors.Is(err, store.ErrOverloaded) || !errors.Is(err, store.ErrNothingDone) {
					t.Error(err)
				}
				if errors.Is(err, store.ErrUnavailable) || store.IsCircuitOpen(err) || store.IsFailure(t.Context(), err) {
					t.Errorf("an overload is a failure of the store: %v", err)
				}
			}
		}
		full()
		resume := e.hang("n")
		full()
		refused(t, binding, "n:b")
		resume()
		var c store.Counts
		if b.Count(&c); c.Overflows != 18 || c.Opened != 1 {
			t.Errorf("%+v", c)
		}
	})
}
