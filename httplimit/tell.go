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

// tell sets the header fields that tell what stands for the limits. It reports whether others have told of theirs before.
func (m *middleware) tell(h http.Header, a *admission.Admission) (joins bool) {
	if m.headers == header.Draft11 && m.tellOne(h, a) {
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

// tellOne is tell for what nearly all requests are: those that one limit decides, and of which nobody has told anything yet. It reports whether this is one.
func (m *middleware) tellOne(h http.Header, a *admission.Admission) bool {
	if h[ratePolicy] != nil || h[rateLimit] != nil {
		return false
	}
	var t *told
	var values []string
	for s := range a.Each() {
		if t != nil {
			return false
		}
		t = m.told.of(s.Name, s.Limit)
		values = t.values(&s.Decision)
	}
	if t != nil {
		h[ratePolicy], h[rateLimit] = t.policy, values
	}
	return true
}
