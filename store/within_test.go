package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A slowStore is in memory. Each operation takes a delay, or hangs.
type slowStore struct {
	store.Store
	breaker *store.Breaker
	delay   time.Duration
	hangs   func(op algorithm.Op, key string) bool
}

func newSlowStore(t *testing.T, delay time.Duration) *slowStore {
	t.Helper()
	s := &slowStore{
		Store: memory.New(memory.Options{}), delay: delay,
		breaker: store.NewBreaker(store.BreakerOptions{
			Timeout: time.Second,
			Probe:   func(context.Context, *store.Circuit, bool) error { return nil },
		}),
	}
	t.Cleanup(s.breaker.Close)
	return s
}

func (s *slowStore) Breaker() *store.Breaker { return s.breaker }

// part returns a part of cost 1.
func (s *slowStore) part(t *testing.T, key string) store.Part {
	t.Helper()
	limit := algorithm.MustParseLimit("10/1h")
	b, err := s.Bind(store.Spec{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return store.Part{Store: s, Binding: slowBinding{b, s}, Limit: limit, Key: key, Cost: 1}
}

type slowBinding struct {
	store.Binding
	store *slowStore
}

func (b slowBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	key = strings.Clone(key)
	return store.Through(ctx, b.store.breaker.Circuit(""), func(ctx context.Context) (algorithm.Verdict, error) {
		delay := b.store.delay
		if b.store.hangs != nil && b.store.hangs(op, key) {
			delay = time.Hour
		}
		select {
		case <-time.After(delay):
			return b.Binding.Do(ctx, key, op, now)
		case <-ctx.Done():
			return algorithm.Verdict{}, ctx.Err()
		}
	})
}

// All steps of a joint take share a timeout.
func TestTakeInTurnHasOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(t, 600*time.Millisecond)
		defer s.breaker.Close()
		parts := []store.Part{s.part(t, "a"), s.part(t, "b")}
		began := time.Now()
		_, err := store.TakeInTurn(t.Context(), parts, 0, nil)
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v after %v, want a timeout after 1s", err, took)
		}
		s.delay = 200 * time.Millisecond
		if _, err := store.TakeInTurn(t.Context(), parts, 0, nil); err != nil {
			t.Errorf("steps of 800ms in all: %v", err)
		}
	})
}

// After the timeout, units are given back in the background.
func TestTakeInTurnGivesBackAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(t, 100*time.Millisecond)
		defer s.breaker.Close()
		parts := []store.Part{s.part(t, "a"), s.part(t, "b")}
		s.hangs = func(op algorithm.Op, key string) bool { return op.Kind == algorithm.Take && op.Cost > 0 && key == "b" }
		began := time.Now()
		_, err := store.TakeInTurn(t.Context(), parts, 0, nil)
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, store.ErrNothingDone) {
			t.Errorf("error %v after %v, want a timeout after 1s", err, took)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if v, err := parts[0].Binding.Do(t.Context(), "a", algorithm.Op{}, 0); err != nil || v.Remaining != 10 {
			t.Errorf("%+v, %v: want all units back", v, err)
		}
	})
}
