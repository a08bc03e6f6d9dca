package acceptance_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
)

func acquire(t *testing.T, l *weir.Limiter, cost int64) *weir.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "k", cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func release(t *testing.T, lease *weir.Lease) {
	t.Helper()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func free(t *testing.T, l *weir.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// A released place goes to the first waiter, at once, and to no other waiter.
func TestAcquireGoesFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 2 lease=1h", weir.WithStore(s))
		first, second := acquire(t, l, 1), acquire(t, l, 1)
		type holder struct {
			number int
			lease  *weir.Lease
		}
		acquired := make(chan holder, 50)
		for i := range 50 {
			go func() {
				lease, err := l.Acquire(t.Context(), "k", 1)
				if err != nil {
					t.Error(err)
				}
				acquired <- holder{i, lease}
			}()
			synctest.Wait() // to keep their order
		}
		start, before := time.Now(), s.ops.Load()
		release(t, second)
		for i := range 50 {
			next := <-acquired
			synctest.Wait()
			if next.number != i || len(acquired) > 0 {
				t.Fatalf("number %d has the place that was released, want %d; and %d more", next.number, i, len(acquired))
			}
			release(t, next.lease)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("50 places went on in %v, want at once", took)
		}
		// of each: a take, perhaps a denial, a release
		if ops := s.ops.Load() - before; ops > 4*50+1 {
			t.Errorf("%d operations for 50 places", ops)
		}
		release(t, first)
		if n := free(t, l); n != 2 {
			t.Errorf("%d places are free at the end, want 2", n)
		}
	})
}

// Only the first waiter tries again, once a second at most.
func TestAcquireAcrossLimitersPollsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		here, there := limiter(t, "concurrent 1 lease=24h", weir.WithStore(s)), limiter(t, "concurrent 1 lease=24h", weir.WithStore(s))
		held := acquire(t, there, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if lease, err := here.Acquire(ctx, "k", 1); err == nil {
					release(t, lease)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		before := s.ops.Load()
		time.Sleep(time.Minute)
		if ops := s.ops.Load() - before; ops > 62 {
			t.Errorf("%d operations in a minute", ops)
		}
		release(t, held)
		start := time.Now()
		lease := acquire(t, limiter(t, "concurrent 1 lease=24h", weir.WithStore(s)), 1)
		release(t, lease)
		cancel()
		group.Wait()
		if took := time.Since(start); took > time.Second {
			t.Errorf("acquired after %v, want a second at most", took)
		}
	})
}

func TestLeaseIsRenewedUntilRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 3 lease=30s", weir.WithStore(s))
		lease := acquire(t, l, 2)
		ctx := lease.Context(t.Context())
		for range 40 {
			time.Sleep(7 * time.Second)
			if n := free(t, l); n != 1 || ctx.Err() != nil {
				t.Fatalf("%d places are free while two are held; context: %v", n, ctx.Err())
			}
		}
		release(t, lease)
		if n := free(t, l); n != 3 {
			t.Errorf("%d places are free after the release, want 3", n)
		}
		if <-ctx.Done(); errors.Is(context.Cause(ctx), weir.ErrLeaseLost) {
			t.Error("the context of a lease that was released says that it was lost")
		}
		release(t, lease)
		before := s.ops.Load()
		time.Sleep(time.Hour)
		if ops := s.ops.Load() - before; ops != 0 {
			t.Errorf("%d operations after the release", ops)
		}
	})
}

// The context of the wait may have a deadline, which does not end the lease.
func TestLeaseOutlivesTheContextOfAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "concurrent 1 lease=30s")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lease, err := l.Acquire(ctx, "k", 1)
		if err != nil {
			t.Fatal(err)
		}
		work := lease.Context(t.Context())
		time.Sleep(time.Hour)
		if n := free(t, l); n != 0 || work.Err() != nil {
			t.Errorf("%d places are free, and the context: %v", n, work.Err())
		}
		if err := lease.Release(ctx); err != nil || free(t, l) != 1 { // also when ctx has ended
			t.Errorf("%v, and %d places are free", err, free(t, l))
		}
	})
}

func TestAcquireThatIsCancelledLeavesNoPlaceTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=1h", weir.WithStore(s))
		held := acquire(t, l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		release(t, held)
		if n := free(t, l); n != 1 {
			t.Errorf("%d places are free, want 1", n)
		}
	})
}

// A store may grant a place after ctx has ended, without a waiter.
func TestAcquireThatIsCancelledWhileTheStoreDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		s.set(func(op algorithm.Op) error {
			if op.Kind == algorithm.Take && op.Cost > 0 {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		l := limiter(t, "concurrent 1 lease=1h", weir.WithStore(s))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Minute)
		if n := free(t, l); n != 1 {
			t.Errorf("%d places are free, want 1", n)
		}
	})
}

var errAway = errors.New("the engine is away")

func TestLeaseIsLostWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		lease, start := acquire(t, l, 1), time.Now()
		ctx := lease.Context(t.Context())
		s.set(func(algorithm.Op) error { return errAway })
		time.Sleep(11 * time.Second)
		s.set(nil) // a single failed renewal is not the end
		time.Sleep(11 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("lost although it was renewed in time: %v", context.Cause(ctx))
		}
		s.set(func(algorithm.Op) error { return errAway })
		<-ctx.Done()
		if after := time.Since(start); after != 43*time.Second { // renewed at 13 s
			t.Errorf("lost after %v, want 43s", after)
		}
		if err := lease.Release(t.Context()); !errors.Is(context.Cause(ctx), weir.ErrLeaseLost) || !errors.Is(err, weir.ErrLeaseLost) {
			t.Errorf("cause %v, Release: %v", context.Cause(ctx), err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, weir.ErrLeaseLost) {
			t.Errorf("second Release: %v", err)
		}
	})
}

// A store that fails is tried at each tenth of the lease: one that is back before the end is not
// too late.
func TestLeaseIsKeptWhenTheStoreIsBackBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		lease := acquire(t, l, 1)
		ctx := lease.Context(t.Context())
		s.set(func(algorithm.Op) error { return errAway })
		time.Sleep(26 * time.Second)
		s.set(nil)
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Errorf("lost, though the store was back after 26s: %v", context.Cause(ctx))
		}
		if err := lease.Release(t.Context()); err != nil || free(t, l) != 1 {
			t.Errorf("Release: %v; %d places are free, want 1", err, free(t, l))
		}
	})
}

// The clock of a suspended machine has jumped. The place may have had a different holder meanwhile,
// and there may be room again; the lease is lost all the same.
func TestLeaseIsLostWhenItEndedThoughThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
		l := limiter(t, "concurrent 1 lease=30s", weir.WithClock(now))
		lease := acquire(t, l, 1)
		ctx := lease.Context(t.Context())
		jump.Store(int64(time.Hour))
		other, err := l.Reserve(t.Context(), "k", 1)
		if err != nil || !other.Allowed || other.Cancel(t.Context()) != nil {
			t.Fatal(other, err)
		}
		<-ctx.Done()
		if err := lease.Release(t.Context()); !errors.Is(err, weir.ErrLeaseLost) || free(t, l) != 1 {
			t.Errorf("Release: %v; %d places are free, want 1", err, free(t, l))
		}
	})
}

// A store slower than the lease stops the renewals, as a stopped process does.
func TestLeaseIsLostWhenARenewalTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		lease := acquire(t, l, 1)
		s.set(func(op algorithm.Op) error {
			if op.Kind == algorithm.Renew {
				time.Sleep(time.Minute)
			}
			return nil
		})
		time.Sleep(15 * time.Second)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		// a renewal is in progress
		if err := lease.Release(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, weir.ErrLeaseLost) || free(t, l) != 1 {
			t.Errorf("Release: %v; %d places are free, want 1", err, free(t, l))
		}
	})
}

func TestReleaseCanBeRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		lease := acquire(t, l, 1)
		s.set(func(algorithm.Op) error { return errAway })
		if err := lease.Release(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("Release: %v", err)
		}
		s.set(nil)
		release(t, lease)
		if n := free(t, l); n != 1 {
			t.Errorf("%d places are free, want 1", n)
		}
	})
}

func TestAcquireWhileTheLimitChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "concurrent 1 lease=1h", weir.WithName("jobs"))
		held, errs := acquire(t, l, 1), make(chan error, 2)
		for range 2 {
			go func() {
				lease, err := l.Acquire(t.Context(), "k", 1)
				if err == nil {
					err = lease.Release(t.Context())
				}
				errs <- err
			}()
			synctest.Wait()
		}
		setLimit(t, l, "concurrent 2 lease=1h")
		for range 2 {
			if err := <-errs; err != nil {
				t.Errorf("after a raise: %v", err)
			}
		}
		blocker := acquire(t, l, 1)
		go func() {
			_, err := l.Acquire(t.Context(), "k", 1)
			errs <- err
		}()
		synctest.Wait()
		setLimit(t, l, "5/1s")
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "Wait") {
			t.Errorf("after a change to a rate: %v", err)
		}
		release(t, blocker)
		release(t, held)
	})
}

func TestAcquireAndWaitNameEachOther(t *testing.T) {
	places, rate := limiter(t, "concurrent 2 lease=30s"), limiter(t, "2/1s")
	if err := places.Wait(t.Context(), "k", 1); err == nil || !strings.Contains(err.Error(), "accepted: Acquire") || free(t, places) != 2 {
		t.Errorf("Wait under a concurrent limit: %v", err)
	}
	if _, err := rate.Acquire(t.Context(), "k", 1); err == nil || !strings.Contains(err.Error(), "accepted: a concurrent limit") || free(t, rate) != 2 {
		t.Errorf("Acquire under a rate: %v", err)
	}
	var capacity *weir.CapacityError
	if _, err := places.Acquire(t.Context(), "k", 3); !errors.As(err, &capacity) {
		t.Errorf("Acquire of 3 of 2: %v", err)
	}
	var cost *weir.CostError
	if _, err := places.Acquire(t.Context(), "k", -1); !errors.As(err, &cost) {
		t.Errorf("Acquire of -1: %v", err)
	}
	lease, err := places.Acquire(t.Context(), "k", 0)
	if err != nil || lease.Release(t.Context()) != nil || free(t, places) != 2 {
		t.Errorf("Acquire of 0: %v", err)
	}
	var zero weir.Lease
	if zero.Release(t.Context()) != nil || zero.Context(t.Context()).Err() == nil {
		t.Error("the zero Lease holds something")
	}
}
