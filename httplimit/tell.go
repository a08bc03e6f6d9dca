package httplimit

import (
	"net/http"
	"time"
	"unsafe"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// The names of the fields of Draft11, as http.Header has them.
const (
	ratePolicy = "Ratelimit-Policy"
	rateLimit  = "Ratelimit"
)

// tell sets the header fields that tell what stands for the limits.
func (m *middleware) tell(h http.Header, a *admission.Admission) {
	if m.headers == header.Draft11 && m.tellOne(h, a) {
		return
	}
	var few [4]admission.Standing
	each := few[:0]
	for s := range a.Each() {
		each = append(each, s)
	}
	m.headers.Write(h, each, time.Now())
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
		if t = m.last.Load(); t == nil || t.name != s.Name || t.limit != s.Limit {
			t = tellingOf(s.Name, s.Limit)
			m.last.Store(t)
		}
		values = t.values(&s.Decision)
	}
	if t != nil {
		h[ratePolicy], h[rateLimit] = t.policy, values
	}
	return true
}

// told is what stays the same of what is told of a limit.
type told struct {
	name   string
	limit  weir.Limit
	line   *header.Line
	policy []string // with no room for a second value: who adds one makes a slice of his own
}

func tellingOf(name string, limit weir.Limit) *told {
	line := header.Of(name, limit)
	return &told{name, limit, line, []string{line.Policy()}[:1:1]}
}

// short is how long RateLimit usually is at most.
const short = 64

// values returns the value of RateLimit, and the slice that a header has it in, in one allocation.
func (t *told) values(d *weir.Decision) []string {
	size := t.line.Size()
	if size > short {
		return []string{string(t.line.Append(make([]byte, 0, size), d))}
	}
	v := &struct {
		values [1]string
		text   [short]byte
	}{}
	text := t.line.Append(v.text[:0], d)
	v.values[0] = unsafe.String(&v.text[0], len(text)) // nobody writes to v.text any more
	return v.values[:]
}
