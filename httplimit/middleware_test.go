package httplimit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

func TestLimiter(t *testing.T) {
	url := serve(t, limit(t, newLimiter(t, "2/1m"), httplimit.Options{}, okHandler))
	for i, want := range []struct {
		status        int
		body          string
		limit, policy string
		retry         string
	}{
		{200, "ok", `r=1;t=30`, `q=2;w=60`, ""},
		{200, "ok", `r=0;t=30`, `q=2;w=60`, ""},
		{429, "", `r=0;t=30`, `q=2;w=60`, "30"},
	} {
		got := get(t, url)
		if got.status != want.status || want.body != "" && got.body != want.body {
			t.Errorf("request %d: %d %q, want %d %q", i+1, got.status, got.body, want.status, want.body)
		}
		if l := list(t, got.header, "RateLimit"); len(l) != 1 || l["2/1m"] != want.limit {
			t.Errorf("request %d: RateLimit is %q, want %q", i+1, l, want.limit)
		}
		if p := list(t, got.header, "RateLimit-Policy"); len(p) != 1 || p["2/1m"] != want.policy {
			t.Errorf("request %d: RateLimit-Policy is %q, want %q", i+1, p, want.policy)
		}
		if retry := got.header.Get("Retry-After"); retry != want.retry {
			t.Errorf("request %d: Retry-After is %q, want %q", i+1, retry, want.retry)
		}
	}
}

const yaml = `
policies:
  - {name: all, key: all, limits: [quota-reset 1000/1h]}
  - {name: api, match: {path: "/api/**"}, key: ["header:X-Key"], limits: [quota-reset 2/1h, quota-reset 100/24h], plans: {blocked: deny, free: unlimited}}
`

type plans map[string]string

func (p plans) Grant(client string) (*policy.Grant, bool) {
	plan, known := p[client]
	return &policy.Grant{Plan: plan}, known
}

func (p plans) Grants(f func(*policy.Grant) error) error {
	for client := range p {
		if g, _ := p.Grant(client); f(g) != nil {
			return f(g)
		}
	}
	return nil
}

func TestPolicies(t *testing.T) {
	set := newSet(t, yaml, policy.Options{Clients: plans{"eve": "blocked", "ann": "free"}})
	url := serve(t, limit(t, set, httplimit.Options{}, okHandler))
	for i, want := range []struct {
		path, key string
		status    int
		limits    map[string]string // r of each
	}{
		{"/", "bob", 200, map[string]string{"all": "999"}},
		{"/api/x", "bob", 200, map[string]string{"all": "998", "api/1": "1", "api/2": "99"}},
		{"/api/x", "bob", 200, map[string]string{"all": "997", "api/1": "0", "api/2": "98"}},
		{"/api/x", "bob", 429, map[string]string{"all": "997", "api/1": "0", "api/2": "98"}},
		{"/api/x", "joe", 200, map[string]string{"all": "996", "api/1": "1", "api/2": "99"}},
		{"/api/x", "ann", 200, map[string]string{"all": "995"}},
	} {
		got := get(t, url+want.path, "X-Key: "+want.key)
		if got.status != want.status {
			t.Errorf("request %d: status %d, want %d", i+1, got.status, want.status)
		}
		if got := remaining(t, got.header); !maps.Equal(got, want.limits) {
			t.Errorf("request %d: there remain %q, want %q", i+1, got, want.limits)
		}
		if len(list(t, got.header, "RateLimit-Policy")) != len(want.limits) {
			t.Errorf("request %d: RateLimit-Policy is %q", i+1, got.header["Ratelimit-Policy"])
		}
		if got.status == 429 {
			if d := got.problem(t); len(d.Violated) != 1 || d.Violated[0] != "api/1" {
				t.Errorf("violated are %q", d.Violated)
			}
		}
	}
}

func TestNothingIsToldWhereNoPolicyMatches(t *testing.T) {
	set := newSet(t, `policies: [{name: api, match: {path: "/api/**"}, key: all, limits: [1/1h]}]`, policy.Options{})
	got := get(t, serve(t, limit(t, set, httplimit.Options{Headers: header.Draft11 | header.XRateLimit}, okHandler)))
	for name := range got.header {
		if name != "Date" && name != "Content-Type" && name != "Content-Length" {
			t.Errorf("%s: %q", name, got.header[name])
		}
	}
}

func TestHeaders(t *testing.T) {
	for f, want := range map[header.Formats][]string{
		0:                                  {"Ratelimit", "Ratelimit-Policy"},
		header.Draft11:                     {"Ratelimit", "Ratelimit-Policy"},
		header.XRateLimit:                  {"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		header.Draft11 | header.XRateLimit: {"Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		header.None:                        {},
	} {
		url := serve(t, limit(t, newLimiter(t, "1/1h"), httplimit.Options{Headers: f}, okHandler))
		for _, status := range []int{200, 429} {
			got := get(t, url)
			for _, name := range []string{"Date", "Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options", "Retry-After"} {
				got.header.Del(name)
			}
			if got.status != status || len(got.header) != len(want) {
				t.Errorf("headers %b: %d %v, want %d %q", f, got.status, got.header, status, want)
			}
			for _, name := range want {
				if len(got.header[name]) != 1 {
					t.Errorf("headers %b: %s is %q", f, name, got.header[name])
				}
			}
		}
	}
}

// Who looks at the request first says who it is from, what it costs, and what limit it has.
func TestHooks(t *testing.T) {
	gold := newLimiter(t, "fixed-window 50/1h")
	url := serve(t, limit(t, newLimiter(t, "fixed-window 10/1h"), httplimit.Options{
		Name: "calls",
		Key:  identity.Key{identity.Header("X-User")},
		Cost: func(r *http.Request) int64 { return int64(len(r.URL.Query().Get("n"))) },
		Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
		Override: func(r *http.Request) *weir.Limiter {
			if r.Header.Get("X-Plan") == "gold" {
				return gold
			}
			return nil
		},
	}, okHandler))
	for i, want := range []struct {
		path, user, plan string
		left             string // of calls
	}{
		{"/?n=aaa", "ann", "", "7"},
		{"/?n=aaa", "bob", "", "7"},
		{"/?n=a", "ann", "", "6"},
		{"/", "ann", "", "6"}, // a peek
		{"/health?n=aaa", "ann", "", ""},
	} {
		got := get(t, url+want.path, "X-User: "+want.user, "X-Plan: "+want.plan)
		if want.left == "" {
			if got.status != 200 || got.header["Ratelimit"] != nil {
				t.Errorf("request %d: %d %v", i+1, got.status, got.header)
			}
			continue
		}
		if left := remaining(t, got.header)["calls"]; got.status != 200 || left != want.left {
			t.Errorf("request %d: %d, and there remain %v, want %s", i+1, got.status, left, want.left)
		}
	}
	got := get(t, url+"/?n=aa", "X-User: ann", "X-Plan: gold")
	for name, left := range remaining(t, got.header) {
		if left != "48" || name == "calls" {
			t.Errorf("of another limiter there remain %s of %s", left, name)
		}
	}
}

// remaining returns r of each limit of RateLimit.
func remaining(t *testing.T, h http.Header) map[string]string {
	t.Helper()
	left := map[string]string{}
	for name, params := range list(t, h, "RateLimit") {
		left[name] = param(params, "r")
	}
	return left
}

// Without something to settle the handler gets the very ResponseWriter that the server made.
func TestResponseWriterIsTheServersOwn(t *testing.T) {
	var got http.ResponseWriter
	seen := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })
	h := limit(t, newLimiter(t, "9/1h"), httplimit.Options{}, limit(t, newSet(t, yaml, policy.Options{}), httplimit.Options{}, seen))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/x", nil)); got != http.ResponseWriter(w) {
		t.Errorf("the handler wrote to a %T", got)
	}
}
