package header

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// When a place is free nobody knows: the end of a lease, which is renewed, is not told as Reset, or clients would stand still for so long.
func TestXOfPlaces(t *testing.T) {
	for lease, want := range map[string]int64{"30s": 1, "1h": 1, "200ms": 1} {
		limit := weir.MustParseLimit("concurrent 4 lease=" + lease)
		s := admission.Standing{Name: "a", Limit: limit, Decision: weir.Decision{Allowed: true, Limit: 4, ResetAfter: limit.Period}}
		h := http.Header{}
		XRateLimit.Write(h, []admission.Standing{s}, now)
		expect(t, h, map[string]string{"X-Ratelimit-Limit": "4", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": strconv.FormatInt(want, 10)})
		h = http.Header{}
		XRateLimitUnix.Write(h, []admission.Standing{s}, now)
		if at, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64); err != nil || at > now.Add(time.Second).Unix()+1 {
			t.Errorf("the Reset of a lease of %s is %q, want within a second", lease, h.Get("X-Ratelimit-Reset"))
		}
	}
}
