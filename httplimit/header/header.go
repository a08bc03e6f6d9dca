// Package header writes and reads the header fields that tell clients of limits: RateLimit-Policy and RateLimit, as a draft of the IETF has them, X-RateLimit-* for
// older clients, and Retry-After.
package header

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
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

// Err says what is wrong with formats that make no sense together. 0 is not wrong: it writes nothing.
func (f Formats) Err() error {
	const accept = "Draft11, XRateLimit or XRateLimitUnix, Draft11 with either, or None"
	if f > None || f&XRateLimit != 0 && f&XRateLimitUnix != 0 {
		return fmt.Errorf("header: formats are %#b; accepted: %s", uint8(f), accept)
	}
	return nil
}

// RetryAfter returns the value of Retry-After: whole seconds, rounded up, never 0. Who may never try again has none: of weir.Never it is "".
func RetryAfter(d time.Duration) string {
	if d == weir.Never {
		return ""
	}
	return strconv.FormatInt(seconds(d), 10)
}

// The names of the fields, as http.Header has them.
const (
	ratePolicy = "Ratelimit-Policy"
	rateLimit  = "Ratelimit"
	xLimit     = "X-Ratelimit-Limit"
	xRemaining = "X-Ratelimit-Remaining"
	xReset     = "X-Ratelimit-Reset"
)

// Write writes what stands for each limit, each field on one line.
//
// What is in h already, because there is more than one middleware, or an answer is passed on, is joined with it: RateLimit-Policy and RateLimit are one list each,
// in which a name is once; of two that have the same name the one that denies stays, or else the one that leaves less. X-RateLimit-* have room for one limit,
// and are chosen by the same rule. What is in h and malformed is dropped, because it would make a client ignore the rest, and so is what is beyond 1024 limits or 64 KiB of a list.
func (f Formats) Write(h http.Header, each []admission.Standing, now time.Time) {
	if len(each) == 0 {
		return
	}
	if f&Draft11 != 0 {
		writeLists(h, each)
	}
	if f&(XRateLimit|XRateLimitUnix) != 0 {
		f.writeX(h, each, now)
	}
}
