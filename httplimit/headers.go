package httplimit

import (
	"net/http"
	"time"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// The names of the fields of Draft11, as http.Header has them.
const (
	ratePolicy = "Ratelimit-Policy"
	rateLimit  = "Ratelimit"
)

// writeHeaders sets the header fields of the limits. It reports whether another middleware has set such
// fields before.
func (m *middleware) writeHeaders(h http.Header, a *admission.Admission) (joins bool) {
	if m.headers == header.Draft11 && m.writeOne(h, a) {
		return false
	}
	joins = h[rateLimit] != nil
	var few [4]admission.Standing
	each := few[:0]
	for s := range a.Each() {
		each = append(each, s)
	}
	m.headers.Write(h, each, time.Now())
	return joins
}

// writeOne is writeHeaders for a request with one limit, and without fields of another middleware, as
// nearly all are. It reports whether this is one.
func (m *middleware) writeOne(h http.Header, a *admission.Admission) bool {
	if h[ratePolicy] != nil || h[rateLimit] != nil {
		return false
	}
	var t *limitHeaders
	var values []string
	for s := range a.Each() {
		if t != nil {
			return false
		}
		t = m.limits.of(s.Name, s.Limit)
		values = t.values(&s.Decision)
	}
	if t != nil {
		h[ratePolicy], h[rateLimit] = t.policy, values
	}
	return true
}
