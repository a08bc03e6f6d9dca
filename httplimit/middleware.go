package httplimit

import (
	"cmp"
	"net/http"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// middleware is shared by all handlers of one New.
type middleware struct {
	gate    *admission.Gate
	charges bool // by the response
	headers header.Formats
	respond func(http.ResponseWriter, *http.Request, Refusal)

	limits   limitHeadersCache
	refusals refusals
}

// New returns middleware that serves the requests that the limits let pass, and refuses others. It returns an error for options that make no sense, an [*admission.OptionError] or that of a Key.
func New[L admission.Limits](limits L, opts Options) (func(http.Handler) http.Handler, error) {
	gate, err := admission.New(limits, admission.Options{
		Name: opts.Name, Key: opts.Key, Cost: opts.Cost, Override: opts.Override, ClientIP: opts.ClientIP, Attributes: opts.Attributes, Skip: opts.Skip,
		Charge: opts.Charge, Hold: opts.Hold, OnStoreError: opts.OnStoreError, Log: opts.Log,
	})
	if err != nil {
		return nil, err
	}
	if err := opts.Headers.Err(); err != nil {
		return nil, err
	}
	m := &middleware{gate: gate, charges: opts.Charge != nil, headers: cmp.Or(opts.Headers, header.Draft11), respond: opts.Respond}
	return m.wrap, nil
}

// wrap panics where a server is put together, as http.Handle does, rather than at its first request.
func (m *middleware) wrap(next http.Handler) http.Handler {
	if next == nil {
		panic("httplimit: the middleware was given a nil http.Handler")
	}
	return &limited{m, next}
}

// limited is a handler whose requests must pass the limits.
type limited struct {
	*middleware

	next http.Handler
}

func (l *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := l.gate.Admit(r)
	joins := l.writeHeaders(w.Header(), &a)
	switch {
	case !a.Outcome.Pass():
		l.refuse(w, r, &a, joins)
	case !a.Held():
		l.next.ServeHTTP(w, r)
	case l.charges:
		l.charged(w, r, a) //nolint:contextcheck // units are settled also when the request has ended
	default:
		l.held(w, r, a) //nolint:contextcheck // as above
	}
}

// held serves a request that has to wait for its turn, or holds something while it is served.
func (l *limited) held(w http.ResponseWriter, r *http.Request, a admission.Admission) {
	defer a.Finish(admission.Response{})
	if l.await(w, r, &a) {
		l.next.ServeHTTP(w, r)
	}
}

// charged serves a request whose cost is known after the response.
func (l *limited) charged(w http.ResponseWriter, r *http.Request, a admission.Admission) {
	record := recorder{head: r.Method == http.MethodHead}
	w = record.wrap(w)
	returned := false
	defer func() { // also while the handler's panic goes on
		a.Finish(admission.Response{Status: record.code(returned), Bytes: record.bytes, Header: w.Header()})
	}()
	if l.await(w, r, &a) {
		l.next.ServeHTTP(w, r)
	}
	returned = true
}

// await reports whether the request's turn has come. If its context ended first, it has been refused.
func (l *limited) await(w http.ResponseWriter, r *http.Request, a *admission.Admission) bool {
	err := a.Await(r.Context())
	if err == nil {
		return true
	}
	gone := *a
	gone.Outcome, gone.Err = admission.Gone, err
	l.refuse(w, r, &gone, false)
	return false
}
