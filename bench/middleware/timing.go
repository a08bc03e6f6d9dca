package middleware

import (
	"net/http"
	"time"

	"github.com/weirlimit/weir/bench/harness"
)

// count adds a request, which was answered with this status.
func count(t *harness.Timing, status int) {
	t.Requests++
	switch status {
	case http.StatusNoContent:
		t.Admitted++
	case http.StatusTooManyRequests:
		t.Denied++
	}
}

// chunk is how many requests are made between two looks at the clock.
const chunk = 256

// ask makes requests for d.
func (w workload) ask(h http.Handler, t traffic, d time.Duration) harness.Timing {
	return harness.Drive(w.Cores, t.len(), d, func(first int, end time.Time) harness.Timing { return work(h, t, first, end) })
}

// work makes requests from the index first on, until the end, a chunk at least.
func work(h http.Handler, t traffic, first int, end time.Time) harness.Timing {
	c, cancel := newCaller(h)
	defer cancel()
	var sum harness.Timing
	for at := first - first%chunk; ; at += chunk {
		if at+chunk > t.len() {
			at = 0
		}
		for i := range chunk {
			count(&sum, c.call(t.addr(at+i)))
		}
		if !time.Now().Before(end) {
			return sum
		}
	}
}
