package header

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// writeX writes X-RateLimit-* of the limit that leaves the least, or leaves what is in h if that is less.
func (f Formats) writeX(h http.Header, each []admission.Standing, now time.Time) {
	s := tightest(each)
	there, ok := xIn(h)
	if ok && s.Decision.Allowed && there.remaining <= s.Decision.Remaining {
		setX(h, &there)
		return
	}
	fresh := s.Decision.ResetAfter
	if s.Limit.Algorithm == weir.Concurrent { // a place is free when somebody is done; the end of a lease, which is renewed, does not say when
		fresh = min(fresh, time.Second)
	}
	reset := untilFresh(fresh)
	if f&XRateLimitUnix != 0 {
		reset = unix(now.Add(fresh))
	}
	setX(h, &threeX{
		limit: strconv.FormatInt(max(0, s.Decision.Limit), 10), left: strconv.FormatInt(max(0, s.Decision.Remaining), 10), reset: strconv.FormatInt(reset, 10),
	})
}

// tightest returns the limit that leaves the least, of those that deny if there are any.
func tightest(each []admission.Standing) *admission.Standing {
	least := &each[0]
	for i := range each {
		s := &each[i]
		denies := !s.Decision.Allowed && least.Decision.Allowed
		alike := s.Decision.Allowed == least.Decision.Allowed
		if denies || alike && s.Decision.Remaining < least.Decision.Remaining {
			least = s
		}
	}
	return least
}

// threeX are X-RateLimit-Limit, -Remaining and -Reset.
type threeX struct {
	limit, left, reset string
	remaining          int64 // left
}

func setX(h http.Header, x *threeX) {
	h[xLimit], h[xRemaining], h[xReset] = []string{x.limit}, []string{x.left}, []string{x.reset}
}

// xIn returns the X-RateLimit-* in h, of several lines those that leave the least. They belong together line by line.
func xIn(h http.Header) (least threeX, ok bool) {
	limits, resets := h[xLimit], h[xReset]
	for i, left := range h[xRemaining] {
		if i >= len(limits) || i >= len(resets) {
			break
		}
		remaining, err := strconv.ParseUint(left, 10, 63)
		_, limitErr := strconv.ParseUint(limits[i], 10, 63)
		_, resetErr := strconv.ParseUint(resets[i], 10, 63)
		if err != nil || limitErr != nil || resetErr != nil {
			continue
		}
		if !ok || int64(remaining) < least.remaining {
			least, ok = threeX{limits[i], left, resets[i], int64(remaining)}, true
		}
	}
	return least, ok
}

// untilFresh returns whole seconds, rounded up; a key that is as good as new has 0.
func untilFresh(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return seconds(d)
}

// unix returns the Unix time in whole seconds, rounded up.
func unix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
