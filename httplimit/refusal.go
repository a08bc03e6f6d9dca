package httplimit

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// What is in the header of every refusal. Handlers must not change values of header fields in place, and so they are shared.
var (
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	problemJSON = []string{"application/problem+json"}
)

// refuse answers a request that may not pass. If it joins others, what they have told of their limits counts for when to come back: a limit of which nothing is left would deny until then.
func (l *limited) refuse(w http.ResponseWriter, r *http.Request, a *admission.Admission, joins bool) {
	h := w.Header()
	h["Cache-Control"] = noStore
	wait := retryAfter(a)
	if joins && wait > 0 {
		wait = max(wait, header.Exhausted(h))
	}
	if wait > 0 {
		h["Retry-After"] = l.refusals.retryAfter(wait)
	} else {
		delete(h, "Retry-After")
	}
	status := statuses[a.Outcome]
	if l.respond != nil {
		l.respondBy(w, r, Refusal{Admission: *a, Status: status})
		return
	}
	h["Content-Type"] = problemJSON
	h["X-Content-Type-Options"] = noSniff
	delete(h, "Content-Length")
	body := l.refusals.document(a)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // to a client that is away, there is nothing to do
	}
}

// respondBy answers by the server's own function. What that writes without a status has the refusal's, and so has nothing at all: what is refused is never a 200 by oversight.
func (l *limited) respondBy(w http.ResponseWriter, r *http.Request, refusal Refusal) {
	record := recorder{fallback: refusal.Status}
	l.respond(record.wrap(w), r, refusal)
	record.begin()
}

// retryAfter is after how long the same request may pass, or 0 if that is not known.
func retryAfter(a *admission.Admission) time.Duration {
	switch a.Outcome {
	case admission.Denied:
		return max(1, a.Decision.RetryAfter)
	case admission.Undecided:
		if wait := a.Decision.RetryAfter; wait > 0 && wait != weir.Never {
			return wait
		}
		return time.Second
	default:
		return 0
	}
}

// statuses are the status of each outcome.
var statuses = func() (s [admission.Gone + 1]int) {
	for o := range s {
		s[o] = problemOf(admission.Outcome(o)).Status
	}
	return s
}()

// refusals keeps the last document that was made, and the last Retry-After, because one that comes often comes often in a row: of a limiter the document is nearly always the same, and so is
// when to come back while one client hammers.
type refusals struct {
	last  atomic.Pointer[made]
	retry atomic.Pointer[retry]
}

type retry struct {
	second time.Duration // the last whole one before the wait is over
	values [1]string
}

func (m *refusals) retryAfter(wait time.Duration) []string {
	second := (wait - 1) / time.Second
	last := m.retry.Load()
	if last == nil || last.second != second {
		last = &retry{second, [1]string{header.RetryAfter(wait)}}
		m.retry.Store(last)
	}
	return last.values[:]
}

type made struct {
	outcome  admission.Outcome
	violated []string
	body     []byte
}

func (m *refusals) document(a *admission.Admission) []byte {
	var few [4]string
	violated := few[:0]
	for name := range a.Violated() {
		violated = append(violated, name)
	}
	last := m.last.Load()
	if last != nil && last.outcome == a.Outcome && slices.Equal(last.violated, violated) {
		return last.body
	}
	p := problemOf(a.Outcome)
	p.Violated = slices.Clone(violated)
	if a.Outcome == admission.Invalid { // says more than its names
		p.Detail = accepted(a.Err, p.Detail)
		return p.document()
	}
	last = &made{a.Outcome, p.Violated, p.document()}
	m.last.Store(last)
	return last.body
}
