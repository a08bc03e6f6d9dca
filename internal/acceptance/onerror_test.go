package acceptance_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// newAwayStore returns a store that fails until it is set to work.
func newAwayStore() *gatedStore {
	s := newGatedStore()
	s.set(func(algorithm.Op) error { return errAway })
	return s
}

func away(t *testing.T, text string, opts ...weir.Option) (*weir.Limiter, *gatedStore) {
	t.Helper()
	s := newAwayStore()
	return limiter(t, text, append(opts, weir.WithStore(s))...), s
}

func TestWithoutTheStoreAllMethodsDeny(t *testing.T) {
	l, _ := away(t, "4/1h", weir.WithName("n"))
	for name, err := range map[string]error{
		"Take": second(l.Take(t.Context(), "k", 1)), "Peek": second(l.Peek(t.Context(), "k")),
		"TakeAt":   second(l.TakeAt(t.Context(), "k", 1, time.Now())),
		"TakeUpTo": third(l.TakeUpTo(t.Context(), "k", 1)), "Reserve": second(l.Reserve(t.Context(), "k", 1)),
		"Hold": second(l.Hold(t.Context(), "k", 1, time.Minute)), "Wait": l.Wait(t.Context(), "k", 1),
		"TakeMany": second(l.TakeMany(t.Context(), []weir.Request{{Key: "k", Cost: 1}}, nil)),
		"TakeAll":  third(weir.TakeAll(t.Context(), weir.Charge{Limiter: l, Key: "k", Cost: 1})),
		"Refund":   second(l.Refund(t.Context(), "k", 1)), "Reset": l.Reset(t.Context(), "k"),
	} {
		if !errors.Is(err, errAway) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[A, B any](_ A, b B) B        { return b }
func third[A, B, C any](_ A, _ B, c C) C { return c }

// What each method decides without the store, for the limiter and for one call.
func TestWithoutTheStore(t *testing.T) {
	for _, perCall := range []bool{false, true} {
		for _, c := range []struct {
			on    store.OnError
			local bool
			most  int64 // units that pass, of 8
		}{{store.Allow, false, 8}, {store.Local, true, 4}, {store.LocalShare(0.5), true, 2}} {
			ctx, opts := t.Context(), []weir.Option{weir.WithName("n")}
			if perCall {
				ctx = store.WithOnError(ctx, c.on)
			} else {
				opts = append(opts, weir.WithOnStoreError(c.on))
			}
			for name, take := range takesOf {
				l, _ := away(t, "4/1h", opts...)
				passed := int64(0)
				for i := range int64(8) {
					d, err := take(ctx, l)
					if err != nil || !d.Failed || d.Local != c.local {
						t.Fatalf("%s, %v: %+v, %v", name, c.on, d, err)
					}
					if d.Allowed != (i < c.most) {
						t.Errorf("%s, %v: request %d: %+v", name, c.on, i, d)
					}
					if d.Allowed {
						passed++
					}
				}
				d, err := l.Peek(ctx, "k")
				if want := map[bool]int64{false: 4, true: c.most - passed}[c.local]; err != nil || d.Remaining != want || !d.Failed || d.Local != c.local {
					t.Errorf("%s, %v: Peek: %+v, %v", name, c.on, d, err)
				}
				if _, err := l.Refund(ctx, "k", 1); !errors.Is(err, errAway) {
					t.Errorf("Refund: %v", err)
				}
				if err := l.Reset(ctx, "k"); !errors.Is(err, errAway) {
					t.Errorf("Reset: %v", err)
				}
			}
		}
	}
}

var takesOf = map[string]func(context.Context, *weir.Limiter) (weir.Decision, error){
	"Take": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) { return l.Take(ctx, "k", 1) },
	"TakeAt": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		return l.TakeAt(ctx, "k", 1, time.Now())
	},
	"TakeUpTo": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		_, d, err := l.TakeUpTo(ctx, "k", 1)
		return d, err
	},
	"TakeMany": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		d, err := l.TakeMany(ctx, []weir.Request{{Key: "k", Cost: 1}}, nil)
		if err != nil {
			return weir.Decision{}, err
		}
		return d[0], nil
	},
	"TakeAll": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		_, each, err := weir.TakeAll(ctx, weir.Charge{Limiter: l, Key: "k", Cost: 1})
		if err != nil {
			return weir.Decision{}, err
		}
		return each[0], nil
	},
	"Reserve": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		r, err := l.Reserve(ctx, "k", 1)
		if err != nil {
			return weir.Decision{}, err
		}
		return r.Decision, nil
	},
	"Hold": func(ctx context.Context, l *weir.Limiter) (weir.Decision, error) {
		h, err := l.Hold(ctx, "k", 1, time.Minute)
		if err != nil {
			return weir.Decision{}, err
		}
		return h.Decision, nil
	},
}

// The decision of a call goes before that of the limiter.
func TestOnErrorOfACall(t *testing.T) {
	l, s := away(t, "1/1h", weir.WithOnStoreError(store.Allow))
	if _, err := l.Take(store.WithOnError(t.Context(), store.Deny), "k", 1); !errors.Is(err, errAway) {
		t.Errorf("denied with %v", err)
	}
	if d, err := l.Take(store.WithOnError(t.Context(), store.Local), "k", 1); err != nil || !d.Local {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := l.Take(store.WithOnError(t.Context(), store.LocalShare(0.5)), "k", 1); !errors.Is(err, errAway) {
		t.Errorf("a share that there is not: %v", err)
	}
	s.set(nil)
	if d, err := l.Take(store.WithOnError(t.Context(), store.LocalShare(0.5)), "k", 1); err != nil || d.Failed {
		t.Errorf("the store is back: %+v, %v", d, err)
	}
}

func TestNewRefusesAShareThatThereIsNot(t *testing.T) {
	var refused *weir.LimitError
	if _, err := weir.New(weir.MustParseLimit("3/1m"), weir.WithOnStoreError(store.LocalShare(0.25))); !errors.As(err, &refused) || refused.Field != "burst" {
		t.Errorf("%v", err)
	}
	if _, err := weir.New(weir.MustParseLimit("3/1m"), weir.WithOnStoreError(store.LocalShare(2))); err == nil {
		t.Error("a share of 2 is accepted")
	}
	l := limiter(t, "100/1m", weir.WithName("n"), weir.WithOnStoreError(store.LocalShare(0.25)))
	if err := l.SetLimit(weir.MustParseLimit("3/1m")); !errors.As(err, &refused) || l.Limit().String() != "100/1m" {
		t.Errorf("%v, and the limit is %v", err, l.Limit())
	}
}

// Errors of the caller are errors, whatever the limiter does while its store fails.
func TestErrorsOfTheCallerAreNoFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, on := range []store.OnError{store.Allow, store.Local} {
		l, s := away(t, "4/1h", weir.WithOnStoreError(on))
		var negative *weir.CostError
		if _, err := l.Take(t.Context(), "k", -1); !errors.As(err, &negative) {
			t.Errorf("a negative cost: %v", err)
		}
		if _, err := l.Take(ended, "k", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context: %v", err)
		}
		if _, err := l.TakeAt(t.Context(), "k", 1, time.Unix(1<<40, 0)); !errors.Is(err, weir.ErrTime) {
			t.Errorf("a time that is too far: %v", err)
		}
		if _, err := l.Hold(t.Context(), "k", 1, 0); err == nil {
			t.Error("a hold without a life")
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.set(func(algorithm.Op) error { cancel(); return ctx.Err() })
		if _, err := l.Take(ctx, "k", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller gave up: %v", err)
		}
		s.set(func(algorithm.Op) error { return &store.KeyError{Key: "k", Err: errAway} })
		if _, err := l.Take(t.Context(), "k", 1); !errors.Is(err, errAway) {
			t.Errorf("a value that is not weir's: %v", err)
		}
	}
}

// A deadline that ends because the store hangs does not leave the caller without a decision.
func TestDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := away(t, "4/1h", weir.WithOnStoreError(store.Local))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.set(func(algorithm.Op) error { <-ctx.Done(); return ctx.Err() })
		if d, err := l.Take(ctx, "k", 1); err != nil || !d.Local || d.Remaining != 3 {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := l.Take(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the deadline had ended before: %v", err)
		}
		if _, err := l.Take(store.WithOnError(ctx, store.Deny), "k", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// What is taken locally is settled locally, also when the store is back; and what the store has is not
// settled locally.
func TestUnitsAreSettledWhereTheyWereTaken(t *testing.T) {
	for _, on := range []store.OnError{store.Allow, store.Local} {
		l, s := away(t, "4/1h", weir.WithName("n"), weir.WithOnStoreError(on))
		local := on == store.Local
		h, err := l.Hold(t.Context(), "k", 3, time.Hour)
		if err != nil || !h.Allowed {
			t.Fatal(err)
		}
		s.set(func(algorithm.Op) error { t.Error("the store is called"); return nil })
		if d, err := h.Renew(t.Context()); err != nil || !d.Allowed || d.Local != local {
			t.Errorf("Renew: %+v, %v", d, err)
		}
		if d, err := h.Commit(t.Context(), 1); err != nil || !d.Allowed || !d.Failed || local && d.Remaining != 3 {
			t.Errorf("Commit: %+v, %v", d, err)
		}
		s.set(func(algorithm.Op) error { return errAway })
		r, err := l.Reserve(t.Context(), "k", 2)
		if err != nil || !r.Allowed {
			t.Fatal(err)
		}
		s.set(nil)
		if err := r.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if d, err := l.Peek(t.Context(), "k"); err != nil || d.Failed || d.Remaining != 4 {
			t.Errorf("the store has %+v, %v", d, err)
		}
		if h, err = l.Hold(t.Context(), "k", 3, time.Hour); err != nil || h.Failed {
			t.Fatal(err)
		}
		s.set(func(algorithm.Op) error { return errAway })
		if d, err := l.Peek(t.Context(), "k"); err != nil || local && d.Remaining != 3 {
			t.Errorf("locally: %+v, %v", d, err)
		}
		if _, err := h.Renew(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("Renew of what the store has: %v", err)
		}
		if _, err := h.Commit(t.Context(), 1); !errors.Is(err, errAway) {
			t.Errorf("Commit of what the store has: %v", err)
		}
	}
}

// Leases that were taken without the store are renewed and released without it.
func TestLeasesWithoutTheStore(t *testing.T) {
	for _, on := range []store.OnError{store.Allow, store.Local} {
		synctest.Test(t, func(t *testing.T) {
			l, s := away(t, "concurrent 1 lease=3s", weir.WithOnStoreError(on))
			lease, err := l.Acquire(t.Context(), "k", 1)
			if err != nil {
				t.Fatal(err)
			}
			s.set(nil)
			time.Sleep(10 * time.Second)
			if err := lease.Context(t.Context()).Err(); err != nil {
				t.Errorf("the lease has ended: %v", err)
			}
			s.set(func(algorithm.Op) error { return errAway })
			d, err := l.Peek(t.Context(), "k")
			if err != nil || on == store.Local && d.Remaining != 0 {
				t.Errorf("%+v, %v", d, err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != 1 {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// Limiters of one name on one store have one local limit, and all shares of it are of one state.
func TestLimitersShareLocalLimits(t *testing.T) {
	for _, name := range []weir.Option{weir.WithName("n"), func() weir.Option { return nil }()} {
		s := newAwayStore()
		opts := []weir.Option{weir.WithStore(s)}
		if name != nil {
			opts = append(opts, name)
		}
		whole := limiter(t, "4/1h", append(opts, weir.WithOnStoreError(store.Local))...)
		half := limiter(t, "4/1h", append(opts, weir.WithOnStoreError(store.LocalShare(0.5)))...)
		if d, err := whole.Take(t.Context(), "k", 2); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		if d, err := half.Take(t.Context(), "k", 1); err != nil || d.Allowed {
			t.Errorf("a half has a budget of its own: %+v, %v", d, err)
		}
		if d, err := half.Take(t.Context(), "other", 1); err != nil || !d.Allowed {
			t.Errorf("another key: %+v, %v", d, err)
		}
	}
}

// Local limits are kept for an hour after their last use, and then given back.
func TestLocalLimitsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := away(t, "1/1000h", weir.WithOnStoreError(store.Local))
		take := func() bool {
			d, err := l.Take(t.Context(), "k", 1)
			if err != nil {
				t.Fatal(err)
			}
			return d.Allowed
		}
		for _, want := range []bool{true, false} {
			if take() != want {
				t.Errorf("allowed: %v", !want)
			}
			time.Sleep(59 * time.Minute)
		}
		if take() {
			t.Error("allowed after 118 minutes, with a use in between")
		}
		time.Sleep(61 * time.Minute)
		if !take() {
			t.Error("denied after an hour without use: the local limits are still there")
		}
	})
}

func TestTakeAllWithoutTheStore(t *testing.T) {
	l, s := away(t, "4/1h", weir.WithName("a"), weir.WithOnStoreError(store.Local))
	open := limiter(t, "2/1h", weir.WithStore(s), weir.WithName("b"), weir.WithOnStoreError(store.Allow))
	inMemory := limiter(t, "3/1h", weir.WithName("c"))
	for i := range 4 {
		d, each := takeAll(t, weir.Charge{Limiter: l, Key: "k", Cost: 1}, weir.Charge{Limiter: open, Key: "k", Cost: 1}, weir.Charge{Limiter: inMemory, Key: "k", Cost: 1})
		if d.Allowed != (i < 3) || !d.Failed || !d.Local || !each[0].Local || each[1].Local || !each[1].Failed || each[2].Failed {
			t.Errorf("%d: %+v, %+v", i, d, each)
		}
	}
	if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	deny := limiter(t, "4/1h", weir.WithStore(s), weir.WithName("d"))
	if _, _, err := weir.TakeAll(t.Context(), weir.Charge{Limiter: l, Key: "k", Cost: 1}, weir.Charge{Limiter: deny, Key: "k", Cost: 1}); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
	if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// Waiters of one key fail together: they do not wait for the store one after another.
func TestWaitersFailTogether(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		for _, c := range []struct {
			on   store.OnError
			pass int64
		}{{store.Deny, 0}, {store.Allow, 15}, {store.Local, 15}} {
			synctest.Test(t, func(t *testing.T) {
				l, s := away(t, "15/1h", weir.WithOnStoreError(c.on))
				s.set(func(algorithm.Op) error { time.Sleep(time.Second); return errAway })
				start, ctx := time.Now(), t.Context()
				if deadline {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Hour)
					defer cancel()
				}
				var passed atomic.Int64
				var all sync.WaitGroup
				for range 15 {
					all.Go(func() {
						switch err := l.Wait(ctx, "k", 1); {
						case err == nil:
							passed.Add(1)
						case !errors.Is(err, errAway):
							t.Error(err)
						}
					})
				}
				all.Wait()
				if took := time.Since(start); took != time.Second || passed.Load() != c.pass || s.ops.Load() != 1 {
					t.Errorf("%v: %d passed in %v, with %d calls of the store", c.on, passed.Load(), took, s.ops.Load())
				}
			})
		}
	}
}

// A local limit that denies makes waiters wait; then they call the store again, which is back.
func TestWaitGoesBackToTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := away(t, "1/1m", weir.WithOnStoreError(store.Local))
		start := time.Now()
		for range 2 {
			if err := l.Wait(t.Context(), "k", 1); err != nil {
				t.Fatal(err)
			}
			if time.Since(start) == 0 {
				time.AfterFunc(30*time.Second, func() { s.set(nil) })
			}
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %v", took)
		}
		if d, err := l.Peek(t.Context(), "k"); err != nil || d.Failed || d.Remaining != 0 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A caller whose own deadline ends says nothing about the store: other waiters wait on.
func TestWaitersDoNotFailWithTheFirstOnesDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := away(t, "4/1h")
		s.set(func(algorithm.Op) error { time.Sleep(2 * time.Second); return context.DeadlineExceeded })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { _ = l.Wait(ctx, "k", 1) })
		synctest.Wait()
		all.Go(func() {
			if err := l.Wait(t.Context(), "k", 1); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		s.set(nil)
		all.Wait()
	})
}
