package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// What the middleware allocates for each request: one piece of memory for a value of RateLimit that was not told lately.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		headers     header.Formats
		most        float64
	}{
		{"admitted", "1000000000/1s", header.Draft11, 1},
		{"admitted, with nothing told", "1000000000/1s", header.None, 0},
		{"admitted, with as much left as before", "10/1h", header.Draft11, 0},
		{"denied", "1/1h", header.Draft11, 0},
		{"denied, with nothing told", "1/1h", header.None, 0},
	} {
		minute := time.Duration(0)
		clock := weir.WithClock(func() time.Time { // of 10/1h, what was used before is back
			minute += 6 * time.Minute
			return noon().Add(minute)
		})
		if c.name[0] == 'd' {
			clock = weir.WithClock(noon)
		}
		h := limit(t, newLimiter(t, c.limit, clock), httplimit.Options{Headers: c.headers}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
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
