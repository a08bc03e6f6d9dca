package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/policy"
)

const (
	ianaQuota   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	ianaReduced = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	capacity    = "https://github.com/weirlimit/weir/blob/main/docs/middleware.md#cost-above-capacity"
)

// refusals are the ways in which a request may not pass, and what is answered.
var refusals = []struct {
	name     string
	handler  func(t *testing.T, opts httplimit.Options) http.Handler
	request  func(*http.Request) *http.Request
	outcome  admission.Outcome
	status   int
	kind     string
	violated []string
	retry    string
}{
	{
		name: "denied", outcome: admission.Denied, status: 429, kind: ianaQuota, violated: []string{"two"}, retry: "1800",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			opts.Name = "two"
			l := newLimiter(t, "2/1h")
			take(t, l, "192.0.2.1", 2)
			return limit(t, l, opts, okHandler)
		},
	},
	{
		name: "excessive", outcome: admission.Excessive, status: 422, kind: capacity, violated: []string{"two"},
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			opts.Name, opts.Cost = "two", func(*http.Request) int64 { return 3 }
			return limit(t, newLimiter(t, "2/1h"), opts, okHandler)
		},
	},
	{
		name: "forbidden", outcome: admission.Forbidden, status: 403, kind: "about:blank", violated: []string{"api"},
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			return limit(t, newSet(t, yaml, policy.Options{Clients: plans{"eve": "blocked"}}), opts, okHandler)
		},
		request: func(r *http.Request) *http.Request {
			r.URL.Path = "/api/x"
			r.Header.Set("X-Key", "eve")
			return r
		},
	},
	{
		name: "undecided", outcome: admission.Undecided, status: 503, kind: ianaReduced, retry: "1",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			opts.Log = slog.New(slog.DiscardHandler)
			return limit(t, newLimiter(t, "2/1h", weir.WithClock(nil), weir.WithStore(brokenStore{})), opts, okHandler)
		},
	},
	{
		name: "undecided by policies", outcome: admission.Undecided, status: 503, kind: ianaReduced, retry: "1",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			opts.Log = slog.New(slog.DiscardHandler)
			return limit(t, newSet(t, yaml, policy.Options{Store: brokenStore{}, Log: opts.Log}), opts, okHandler)
		},
	},
	{
		name: "invalid", outcome: admission.Invalid, status: 400, kind: "about:blank",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			opts.Cost = func(*http.Request) int64 { return -1 }
			return limit(t, newLimiter(t, "2/1h"), opts, okHandler)
		},
	},
	{
		name: "invalid by policies", outcome: admission.Invalid, status: 400, kind: "about:blank",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			return limit(t, newSet(t, `policies: [{name: a, key: all, cost: "header:X-Cost", limits: [9/1h]}]`, policy.Options{}), opts, okHandler)
		},
		request: func(r *http.Request) *http.Request {
			r.Header.Set("X-Cost", "gibberish")
			return r
		},
	},
	{
		name: "gone", outcome: admission.Gone, status: 503, kind: "about:blank",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			return limit(t, newLimiter(t, "2/1h"), opts, okHandler)
		},
		request: func(r *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			return r.WithContext(ctx)
		},
	},
	{
		name: "gone from a queue", outcome: admission.Gone, status: 503, kind: "about:blank",
		handler: func(t *testing.T, opts httplimit.Options) http.Handler {
			l := newLimiter(t, "leaky-queue 1/1h queue=5")
			take(t, l, "192.0.2.1", 1)
			return limit(t, l, opts, okHandler)
		},
		request: func(r *http.Request) *http.Request {
			return r.WithContext(&endsLater{Context: r.Context()})
		},
	},
}

// endsLater is a context that has not ended when it is first asked, and then has.
type endsLater struct {
	context.Context

	asked int
}

func (c *endsLater) Err() error {
	c.asked++
	if c.asked > 1 {
		return context.Canceled
	}
	return nil
}

func (c *endsLater) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func take(t *testing.T, l *weir.Limiter, key string, cost int64) {
	t.Helper()
	if d, err := l.Take(t.Context(), key, cost); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
}

// one serves a request as a server does.
func one(h http.Handler, method string, change func(*http.Request) *http.Request) reply {
	r := httptest.NewRequest(method, "/", nil)
	if change != nil {
		r = change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Code, w.Result().Header, w.Body.String()}
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			h := c.handler(t, httplimit.Options{})
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodGet} { // the last is from the same document
				got := one(h, method, c.request)
				d := got.problem(t)
				if got.status != c.status || d.Type != c.kind || !slices.Equal(d.Violated, c.violated) {
					t.Errorf("%d %+v, want %d %s violated %q", got.status, d, c.status, c.kind, c.violated)
				}
				for name, want := range map[string]string{"Retry-After": c.retry, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
					if v := strings.Join(got.header.Values(name), " and "); v != want {
						t.Errorf("%s is %q, want %q", name, v, want)
					}
				}
			}
			if got := one(h, http.MethodHead, c.request); got.status != c.status || got.body != "" {
				t.Errorf("HEAD: %d %q", got.status, got.body)
			}
		})
	}
}

func TestRespond(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			var seen httplimit.Refusal
			h := c.handler(t, httplimit.Options{Respond: func(w http.ResponseWriter, _ *http.Request, r httplimit.Refusal) {
				seen = r
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(r.Status)
				fmt.Fprint(w, "no")
			}})
			got := one(h, http.MethodGet, c.request)
			if got.status != c.status || got.body != "no" || got.header.Get("Content-Type") != "text/plain" || got.header.Get("Retry-After") != c.retry {
				t.Errorf("%d %q %v", got.status, got.body, got.header)
			}
			if seen.Status != c.status || seen.Outcome != c.outcome {
				t.Errorf("status %d, outcome %d; want %d, %d", seen.Status, seen.Outcome, c.status, c.outcome)
			}
		})
	}
}

// A plain writer is that of middleware outside, which can itself only write, and hands on the rest by Unwrap.
type plain struct{ http.ResponseWriter }

func (p plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// A terse writer can besides flush, and say whether it did, and nothing else.
type terse struct{ http.ResponseWriter }

func (w terse) FlushError() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// outside are what there is between the server and the middleware.
var outside = map[string]func(http.ResponseWriter) http.ResponseWriter{
	"the server's own": func(w http.ResponseWriter) http.ResponseWriter { return w },
	"plain":            func(w http.ResponseWriter) http.ResponseWriter { return plain{w} },
	"plain twice":      func(w http.ResponseWriter) http.ResponseWriter { return plain{plain{w}} },
	"terse":            func(w http.ResponseWriter) http.ResponseWriter { return terse{w} },
}

// outsideOf has the handler write to a writer between it and the server.
func outsideOf(wrap func(http.ResponseWriter) http.ResponseWriter, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
}

// What is refused is not a 200 because the server's own answer says no status, or nothing, whatever way it has to write.
func TestRespondWithoutStatus(t *testing.T) {
	for want, respond := range map[string]func(http.ResponseWriter){
		"":      func(http.ResponseWriter) {},
		"write": func(w http.ResponseWriter) { fmt.Fprint(w, "write") },
		"text":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "text") },
		"flush": func(w http.ResponseWriter) {
			if f, can := w.(http.Flusher); can {
				f.Flush()
			}
			fmt.Fprint(w, "flush")
		},
		"controller": func(w http.ResponseWriter) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				fmt.Fprint(w, err)
			}
			fmt.Fprint(w, "controller")
		},
		"copy":  func(w http.ResponseWriter) { _, _ = strings.NewReader("copy").WriteTo(w) },
		"read":  func(w http.ResponseWriter) { _, _ = io.Copy(w, io.LimitReader(strings.NewReader("read"), 9)) },
		"early": func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints); fmt.Fprint(w, "early") },
	} {
		for name, wrap := range outside {
			url := serve(t, outsideOf(wrap, limit(t, newLimiter(t, "1/1h"), httplimit.Options{
				Respond: func(w http.ResponseWriter, _ *http.Request, _ httplimit.Refusal) { respond(w) },
			}, okHandler)))
			wantStatus(t, url, 200)
			if got := get(t, url); got.status != 429 || got.body != want {
				t.Errorf("%q, %s: %d %q", want, name, got.status, got.body)
			}
		}
	}
}

// What an earlier handler has said of the answer that did not come to pass does not break the refusal.
func TestRefusalReplacesContentLength(t *testing.T) {
	h := limit(t, newLimiter(t, "1/1h"), httplimit.Options{}, okHandler)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.Header().Set("Retry-After", "0")
		h.ServeHTTP(w, r)
	}))
	wantStatus(t, url, 200)
	got := get(t, url)
	got.problem(t)
	if retry := got.header.Values("Retry-After"); !slices.Equal(retry, []string{"3600"}) {
		t.Errorf("Retry-After is %q", retry)
	}
}
