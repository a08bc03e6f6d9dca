package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Each call is observed once, when it ends, with its operation, its duration and the cause of its failure; a refused call is
// not observed.
func TestCallsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		breaker, b := e.breaker(t, store.BreakerOptions{Timeout: time.Second})
		var calls []store.Call
		breaker.Observe(func(c store.Call) { calls = append(calls, c) })
		last := func(kind store.CallKind, cause store.Cause, failed bool, took time.Duration) {
			t.Helper()
			if len(calls) != 1 {
				t.Fatalf("%d calls: %+v", len(calls), calls)
			}
			c := calls[0]
			calls = nil
			if c.Kind != kind || (c.Err != nil) != failed || failed && c.Cause != cause || c.Took != took {
				t.Errorf("%+v, want kind %v, cause %v, failed %v, after %v", c, kind, cause, failed, took)
			}
		}
		ctx := context.Background()
		if _, err := b.Do(ctx, "a:k", algorithm.Op{Kind: algorithm.Refund, Cost: 2}, store.OwnClock); err != nil || len(calls) != 1 || calls[0].Op.Kind != algorithm.Refund {
			t.Errorf("%v, %+v", err, calls)
		}
		last(store.CallDo, 0, false, time.Millisecond)
		_, _, _ = b.(store.Stamper).DoStamped(ctx, "a:k", algorithm.Op{Cost: 1}, store.OwnClock)
		last(store.CallDo, 0, false, time.Millisecond)
		_, _ = b.(store.Batcher).TakeMany(ctx, []store.KeyCost{{Key: "a:k", Cost: 1}, {Key: "a:l", Cost: 1}}, store.OwnClock, nil)
		last(store.CallTakeMany, 0, false, 2*time.Millisecond)
		_, _ = store.Through(ctx, breaker.Circuit("a"), func(context.Context) (int, error) { return 0, errors.New("OOM") })
		last(store.CallTakeAll, store.CauseRejection, true, 0)
		given, cancel := context.WithCancel(ctx)
		resume := e.hang("a")
		go func() {
			time.Sleep(10 * time.Millisecond)
			cancel()
		}()
		_, _ = b.Do(given, "a:k", algorithm.Op{Cost: 1}, store.OwnClock)
		last(store.CallDo, store.CauseCaller, true, 10*time.Millisecond)
		_ = take(b, "a:k")
		last(store.CallDo, store.CauseTimeout, true, time.Second)
		for breaker.State().Position == store.Closed {
			_ = take(b, "a:k")
			calls = nil
		}
		_ = take(b, "a:k") // refused
		if len(calls) != 0 {
			t.Errorf("a refused call is observed: %+v", calls)
		}
		resume()
	})
}
