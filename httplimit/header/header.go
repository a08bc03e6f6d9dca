// Package header writes and reads the header fields that tell clients of limits: RateLimit-Policy and RateLimit, as a draft of the IETF has them, X-RateLimit-* for
// older clients, and Retry-After.
package header

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirlimit/weir/admission"
)

// Formats are the header fields to write, some of them or none.
type Formats uint8

const (
	// Draft11 is RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11. A later draft is a constant of its own.
	Draft11 Formats = 1 << iota
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, of the limit that has the least left. Reset is the seconds until the key is as good as new.
	XRateLimit
	// XRateLimitUnix is XRateLimit with Reset as a Unix time.
	XRateLimitUnix
	// None is no header fields but Retry-After.
	None
)

// Write writes what stands for each limit. What other middleware has written before it stays: fields are joined to one list, in which a name is once, and of X-RateLimit-* and a limit that is there
// already the one that leaves less stays.
func (f Formats) Write(h http.Header, each []admission.Standing, now time.Time) {
	for _, s := range each {
		h.Add("RateLimit-Policy", s.Name)
	}
}

// RetryAfter returns the value of Retry-After: whole seconds, rounded up, never 0.
func RetryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
