package examples_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
)

type middleware = func(http.Handler) http.Handler

func through(next http.Handler) http.Handler { return next }

func limit(t *testing.T, text string, opts httplimit.Options) middleware {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(text), weir.WithName(t.Name()+" "+text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := httplimit.New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A server is a framework's site on a listener.
type server struct {
	t    *testing.T
	url  string
	runs *atomic.Int64
}

// forEach runs the test on a site of every framework, whose middleware are made for it.
func forEach(t *testing.T, around, route func(*testing.T) middleware, f func(server)) {
	for name, serve := range frameworks {
		t.Run(name, func(t *testing.T) {
			s := site{around: around(t), route: route(t), runs: new(atomic.Int64)}
			h := serve(s)
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if recover() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
				}()
				h.ServeHTTP(w, r)
			}))
			defer ts.Close()
			f(server{t, ts.URL, s.runs})
		})
	}
}

func none(*testing.T) middleware { return through }

func limited(text string, opts httplimit.Options) func(*testing.T) middleware {
	return func(t *testing.T) middleware { return limit(t, text, opts) }
}

// answer makes the request, "GET /path", and returns the answer, whose status must be as wanted, and its body.
func (s server) answer(request string, want int) (*http.Response, string) {
	s.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		s.t.Fatalf("%s: %d %q (%v), want %d", request, resp.StatusCode, body, err, want)
	}
	return resp, string(body)
}

func TestALimitAroundTheRouterCountsEverything(t *testing.T) {
	forEach(t, limited("2/1h", httplimit.Options{}), none, func(s server) {
		s.answer("GET /hello/ann", http.StatusOK)
		s.answer("GET /nowhere", http.StatusNotFound)
		denied, body := s.answer("GET /hello/ann", http.StatusTooManyRequests)
		if s.runs.Load() != 1 {
			s.t.Errorf("handlers ran %d times, want once", s.runs.Load())
		}
		var problem struct {
			Type   string
			Status int
		}
		if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != http.StatusTooManyRequests || problem.Type == "" {
			s.t.Errorf("the body is %s (%v), want a problem document", body, err)
		}
		if got := denied.Header.Get("Content-Type"); got != "application/problem+json" {
			s.t.Errorf("Content-Type is %q", got)
		}
		if wait, err := strconv.Atoi(denied.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 1800 {
			s.t.Errorf("Retry-After is %q, want 1 to 1800", denied.Header.Get("Retry-After"))
		}
	})
}

func TestALimitOnARouteLeavesOthersAlone(t *testing.T) {
	forEach(t, none, limited("1/1h", httplimit.Options{}), func(s server) {
		s.answer("POST /login?password=right", http.StatusNoContent)
		s.answer("POST /login?password=right", http.StatusTooManyRequests)
		if s.runs.Load() != 1 {
			s.t.Errorf("handlers ran %d times, want once", s.runs.Load())
		}
		s.answer("GET /hello/ann", http.StatusOK)
	})
}

var failures = limited("2/1h", httplimit.Options{Charge: admission.Failures})

// Whatever way a framework has to say a status, the middleware learns of it, wherever it stands.
func TestFailuresAreCharged(t *testing.T) {
	for name, at := range map[string][2]func(*testing.T) middleware{"around": {failures, none}, "route": {none, failures}} {
		t.Run(name, func(t *testing.T) {
			forEach(t, at[0], at[1], func(s server) {
				for range 3 {
					s.answer("POST /login?password=right", http.StatusNoContent)
				}
				for range 2 {
					s.answer("POST /login", http.StatusUnauthorized)
				}
				s.answer("POST /login?password=right", http.StatusTooManyRequests)
			})
		})
	}
}

func TestARoutersOwnFailuresAreCharged(t *testing.T) {
	forEach(t, failures, none, func(s server) {
		s.answer("GET /nowhere", http.StatusNotFound)
		s.answer("GET /nowhere", http.StatusNotFound)
		s.answer("GET /nowhere", http.StatusTooManyRequests)
	})
}

func TestAStatusThatIsFlushedIsCharged(t *testing.T) {
	forEach(t, none, failures, func(s server) {
		for range 2 {
			if _, body := s.answer("POST /stream", http.StatusServiceUnavailable); body != "late" {
				s.t.Errorf("the body is %q, want late", body)
			}
		}
		s.answer("POST /stream", http.StatusTooManyRequests)
	})
}

func TestAConnectionCanBeTakenOver(t *testing.T) {
	forEach(t, failures, failures, func(s server) { s.answer("POST /hijack", http.StatusTeapot) })
}

// hello ann, <nil> has 16 bytes.
func TestBytesAreCharged(t *testing.T) {
	forEach(t, limited("40/1h", httplimit.Options{Charge: admission.Size}), none, func(s server) {
		for _, status := range []int{http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
			s.answer("GET /hello/ann", status)
		}
	})
}

func TestAPanicIsCharged(t *testing.T) {
	forEach(t, none, failures, func(s server) {
		for range 2 {
			s.answer("POST /panic", http.StatusInternalServerError)
		}
		s.answer("POST /panic", http.StatusTooManyRequests)
	})
}

// What is charged by the answer wraps the ResponseWriter, so this is the hard case.
func TestParametersAndContextPass(t *testing.T) {
	forEach(t, func(t *testing.T) middleware {
		l := limit(t, "5/1h", httplimit.Options{Charge: admission.Size})
		return func(next http.Handler) http.Handler { return asUser("bob")(l(next)) }
	}, none, func(s server) {
		if _, body := s.answer("GET /hello/ann", http.StatusOK); body != "hello ann, bob" {
			s.t.Errorf("the body is %q", body)
		}
	})
}

func TestTwoLimitsMakeOneSetOfFields(t *testing.T) {
	forEach(t, limited("9/1h", httplimit.Options{Name: "all"}), limited("2/1h", httplimit.Options{Name: "logins"}), func(s server) {
		for _, status := range []int{http.StatusNoContent, http.StatusNoContent, http.StatusTooManyRequests} {
			resp, _ := s.answer("POST /login?password=right", status)
			for _, field := range []string{"RateLimit-Policy", "RateLimit"} {
				lines := resp.Header.Values(field)
				if len(lines) != 1 || !strings.Contains(lines[0], `"all"`) || !strings.Contains(lines[0], `"logins"`) {
					s.t.Errorf("%s: %q, want one line with all and logins", field, lines)
				}
			}
		}
	})
}

// Three that charge by the answer, each with a ResponseWriter of its own.
func TestStackedLimitsAllSeeTheStatus(t *testing.T) {
	inner := func(t *testing.T) middleware {
		all, few := limit(t, "9/1h", httplimit.Options{Charge: admission.Successes}), limit(t, "2/1h", httplimit.Options{Charge: admission.Failures})
		return func(next http.Handler) http.Handler { return all(few(next)) }
	}
	outer := limited("3/1h", httplimit.Options{Charge: admission.Failures})
	forEach(t, outer, inner, func(s server) {
		for range 4 {
			s.answer("POST /login?password=right", http.StatusNoContent)
		}
		for range 2 {
			s.answer("POST /login", http.StatusUnauthorized)
		}
		s.answer("POST /login", http.StatusTooManyRequests)    // the inner, and the outer sees that
		s.answer("GET /hello/ann", http.StatusTooManyRequests) // the outer
	})
}
