package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weirlimit/weir/internal/server/httpapi"
)

// Requests for /readyz that come during a check of the store share the check, also if the client that
// caused the check goes away. The next request causes a check of its own.
func TestReadyChecksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int64
		answer := make(chan error)
		s := newServer(func(o *httpapi.Options) {
			o.Ready = func(ctx context.Context) error {
				checks.Add(1)
				select {
				case err := <-answer:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		})
		ready := func(ctx context.Context) int {
			return send(s, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil)).StatusCode
		}
		for _, result := range []error{nil, errors.New("gone")} {
			want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[result == nil]
			checks.Store(0)
			first, leave := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for i := range 1000 {
				ctx := t.Context()
				if i == 0 {
					ctx = first
				}
				all.Go(func() {
					if got := ready(ctx); got != want {
						t.Errorf("%d, want %d", got, want)
					}
				})
				synctest.Wait()
			}
			leave()
			synctest.Wait()
			answer <- result
			all.Wait()
			if n := checks.Load(); n != 1 {
				t.Errorf("%d checks for 1000 requests", n)
			}
		}
		if got := ready(t.Context()); got != http.StatusServiceUnavailable { // a store that hangs, for two seconds
			t.Errorf("%d", got)
		}
		if n := checks.Load(); n != 2 {
			t.Errorf("%d checks", n)
		}
	})
}
