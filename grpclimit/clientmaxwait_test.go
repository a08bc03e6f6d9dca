package grpclimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
)

// However often a call is sent again, the server makes it wait for no more than MaxWait, all waits together.
func TestMaxWaitIsForAllRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(int64) error { return refusedFor(codes.ResourceExhausted, 6*time.Second) })
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{MaxWait: 10 * time.Second, Retries: 5}))
		defer end()
		start := time.Now()
		err := empty(t.Context(), client)
		if wantCode(t, err, codes.ResourceExhausted); status.Convert(err).Message() != "no" || calls.Load() != 2 {
			t.Errorf("the error is %v after %d calls, want the server's after 2", err, calls.Load())
		}
		if took := time.Since(start); took < 6*time.Second || took > 6600*time.Millisecond {
			t.Errorf("it took %v, want one wait of 6 s", took)
		}
	})
}

// What the server says while a call waits for the pace is counted with what it has waited for the server before.
func TestMaxWaitIsForAllLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, cost atomic.Int64
		s := counting(&calls, func(n int64) error {
			if n == 1 {
				time.Sleep(7 * time.Second)
			}
			return refusedFor(codes.ResourceExhausted, 6*time.Second)
		})
		opts := grpclimit.ClientOptions{Limiter: limiter(t, "1/8s burst=1", weir.WithName("pace")), MaxWait: 10 * time.Second}
		opts.Cost = func(context.Context, string, any) int64 { return cost.Load() }
		client, end := within(t, s, newClient(t, opts))
		defer end()
		start := time.Now()
		go func() { _ = empty(t.Context(), client) }()
		synctest.Wait()
		cost.Store(1)
		_ = empty(t.Context(), client)
		wantCode(t, empty(t.Context(), client), codes.ResourceExhausted) // waits for the server for 6 s, then for the pace, and in the 7th the server says that it wants 6 more
		if took := time.Since(start); took != 8*time.Second || calls.Load() != 2 {
			t.Errorf("the error came after %v, and %d calls arrived; want 8 s, and 2", took, calls.Load())
		}
	})
}
