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

// Write writes what stands for each limit. What other middleware has written before it stays: fields are joined to one list, in which a name is once, and of X-RateLimit-* and a limit that is there
// already the one that leaves less stays.
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

func writeLists(h http.Header, each []admission.Standing) {
	var buf [256]byte
	policies, limits := buf[:0:128], buf[128:128]
	for i := range each {
		s := &each[i]
		limit := s.Limit.Canonical()
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		w := windowOf(&limit)
		policies = appendPolicy(policies, s.Name, &limit)
		limits = w.append(appendHead(limits, s.Name), &s.Decision)
	}
	values := []string{string(policies), string(limits)}
	h[ratePolicy], h[rateLimit] = values[:1:1], values[1:]
}

func (f Formats) writeX(h http.Header, each []admission.Standing, now time.Time) {
	s := tightest(each)
	reset := seconds0(s.Decision.ResetAfter)
	if f&XRateLimitUnix != 0 {
		at := now.Add(s.Decision.ResetAfter)
		if reset = at.Unix(); at.Nanosecond() > 0 {
			reset++
		}
	}
	h[xLimit] = []string{strconv.FormatInt(s.Decision.Limit, 10)}
	h[xRemaining] = []string{strconv.FormatInt(max(0, s.Decision.Remaining), 10)}
	h[xReset] = []string{strconv.FormatInt(reset, 10)}
}

// tightest returns the limit that leaves the least, of those that deny if there are any.
func tightest(each []admission.Standing) *admission.Standing {
	least := &each[0]
	for i := range each[1:] {
		s := &each[i+1]
		if s.Decision.Allowed != least.Decision.Allowed {
			if least.Decision.Allowed {
				least = s
			}
		} else if s.Decision.Remaining < least.Decision.Remaining {
			least = s
		}
	}
	return least
}

// seconds0 returns whole seconds, rounded up.
func seconds0(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return seconds(d)
}
