package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// What the middleware allocates for each request: one piece of memory for the value of RateLimit, and two for that of Retry-After if it is not short.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		headers     header.Formats
		most        float64
	}{
		{"admitted", "1000000000/1s", header.Draft11, 1},
		{"admitted, with nothing told", "1000000000/1s", header.None, 0},
		{"denied", "1/1h", header.Draft11, 3},
		{"denied, with nothing told", "1/1h", header.None, 2},
	} {
		h := limit(t, newLimiter(t, c.limit), httplimit.Options{Headers: c.headers}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		w := &discard{http.Header{}}
		if got := testing.AllocsPerRun(100, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		}); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.most)
		}
	}
}
