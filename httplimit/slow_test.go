package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/policy"
)

// A lateBody takes its time, and fails.
type lateBody struct{ takes time.Duration }

func (b *lateBody) Read([]byte) (int, error) {
	time.Sleep(b.takes)
	return 0, http.ErrBodyReadAfterClose
}

func (*lateBody) Close() error { return nil }

// A client with slow bodies gets the count of failed logins in an hour, and not the count in each
// Hold.
func TestSlowBodiesAreBounded(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, next http.Handler) http.Handler{
		"limiter": func(t *testing.T, next http.Handler) http.Handler {
			return limit(t, newLimiter(t, "fixed-window 5/1h", weir.WithName("logins"), weir.WithClock(time.Now)), httplimit.Options{Charge: admission.Failures, Hold: time.Second}, next)
		},
		"policies": func(t *testing.T, next http.Handler) http.Handler {
			set := newSet(t, "policies: [{name: logins, key: client_ip, limits: [fixed-window 5/1h]}]", policy.Options{})
			return limit(t, set, httplimit.Options{Charge: admission.Failures, Hold: time.Second}, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var evaluated, refused atomic.Int64
				h := build(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = r.Body.Read(nil)
					evaluated.Add(1)
					w.WriteHeader(http.StatusUnauthorized)
				}))
				var wg sync.WaitGroup
				for range 1700 { // 28 minutes of one window
					wg.Go(func() {
						r := httptest.NewRequest(http.MethodPost, "/login", nil)
						r.Body = &lateBody{20 * time.Second}
						w := httptest.NewRecorder()
						if h.ServeHTTP(w, r); w.Code == http.StatusTooManyRequests {
							refused.Add(1)
						}
					})
					time.Sleep(time.Second)
				}
				wg.Wait()
				if evaluated.Load() != 5 || refused.Load() != 1695 {
					t.Errorf("%d attempts were evaluated within an hour and %d refused, want 5 and 1695", evaluated.Load(), refused.Load())
				}
			})
		})
	}
}
