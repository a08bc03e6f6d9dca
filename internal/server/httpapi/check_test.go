package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const rules = `
policies:
  - {name: login, match: {method: POST, path: /login}, key: [client_ip], limits: ["2/1h", "3/1h"], candidate: ["1/1h"]}
  - {name: work, match: {path: /work}, key: ["header:X-Key"], limits: ["concurrent 1 lease=1h", "100/1h"]}
  - {name: paid, match: {path: /paid}, key: ["header:X-Key"], cost: "header:X-Cost", limits: ["10/1h"]}
  - {name: plan, match: {path: /plan}, key: ["header:X-Key"], limits: ["10/1h"], plans: {free: unlimited, none: deny}}
  - {name: tried, match: {path: /tried}, mode: shadow, key: ["header:X-Key"], limits: ["1/1h"]}
  - {name: open, match: {path: /open}, on_store_error: allow, key: ["header:X-Key"], limits: ["1/1h"]}
  - {name: here, match: {path: /here}, on_store_error: local, key: ["header:X-Key"], limits: ["1/1h"]}
`

// ruled gives a server the policies over a store, or over memory.
func ruled(tb testing.TB, s store.Store) func(*httpapi.Options) {
	tb.Helper()
	c, err := policy.Parse([]byte(rules), "weir.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	set, err := policy.New(c, policy.Options{Store: s, Clients: planned{}})
	if err != nil {
		tb.Fatal(err)
	}
	return func(o *httpapi.Options) { o.Policies = set }
}

// planned are clients whose plans are their names.
type planned struct{}

func (planned) Grant(client string) (*policy.Grant, bool) {
	return &policy.Grant{Plan: client}, client == "free" || client == "none"
}

func (planned) Grants(f func(*policy.Grant) error) error {
	return errors.Join(f(&policy.Grant{Plan: "free"}), f(&policy.Grant{Plan: "none"}))
}

// failing is a store that fails when told to.
type failing struct {
	store.Store
	err error
}

type failingBinding struct {
	store.Binding
	of *failing
}

func (f *failing) Bind(spec store.Spec) (store.Binding, error) {
	b, err := f.Store.Bind(spec)
	return failingBinding{b, f}, err
}

func (f failingBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if f.of.err != nil {
		return algorithm.Verdict{}, f.of.err
	}
	return f.Binding.Do(ctx, key, op, now)
}

// Now implements store.Clock, as memory does.
func (f failingBinding) Now() int64 { return f.Binding.(store.Clock).Now() }

// steadily makes waits comparable: what is left of an hour counts as an hour.
func steadily(body string) string {
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return body
	}
	var round func(any) any
	round = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if n, ok := member.(float64); ok && strings.HasSuffix(name, "_us") && n > 0 {
					member = (time.Duration(n) * time.Microsecond).Round(time.Minute).String()
				}
				if name == "token" && member != "" {
					member = "TOKEN"
				}
				v[name] = round(member)
			}
		case []any:
			for i := range v {
				v[i] = round(v[i])
			}
		}
		return v
	}
	b, err := json.Marshal(round(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Replies show the names of clients in a form without use for strangers.
func TestChecksMaskNames(t *testing.T) {
	const secret = "sk_live_4f9a8b7c6d5e4f3a"
	for path, s := range map[string]*httpapi.Server{"/v1/check": newServer(ruled(t, nil)), "/v1/explain": newServer(ruled(t, nil), admin)} {
		status, got := post(t, s, path, `{"path":"/plan","headers":{"X-Key":"`+secret+`"}}`)
		if status != http.StatusOK || strings.Contains(got, secret[4:]) || !strings.Contains(got, `"key":"`+identity.Mask(secret)+`"`) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

func TestChecks(t *testing.T) {
	s := newServer(ruled(t, nil))
	first := `{"allowed":true,"limit":2,"remaining":1,"retry_after_us":0,"reset_after_us":1800000000,"delay_us":0,"denied":[],"failed":false,"limits":[` +
		`{"policy":"login","limit":"2/1h","role":"enforced","key":"192.0.2.7","cost":1,"allowed":true,"capacity":2,"remaining":1,"retry_after_us":0,"reset_after_us":1800000000,"delay_us":0},` +
		`{"policy":"login","limit":"3/1h","role":"enforced","key":"192.0.2.7","cost":1,"allowed":true,"capacity":3,"remaining":2,"retry_after_us":0,"reset_after_us":1200000000,"delay_us":0},` +
		`{"policy":"login","limit":"1/1h","role":"candidate","key":"192.0.2.7","cost":1,"allowed":true,"capacity":1,"remaining":0,"retry_after_us":0,"reset_after_us":3600000000,"delay_us":0}]}` + "\n"
	if status, got := post(t, s, "/v1/check", `{"method":"POST","path":"/login","client_ip":"::ffff:192.0.2.7"}`); status != 200 || got != first {
		t.Errorf("the first check\n got %d %s\nwant %s", status, got, first)
	}
	const login = `"method":"POST","path":"/login","client_ip":"192.0.2.7"`
	for _, step := range []struct{ body, want string }{
		{`{` + login + `,"cost":2}`, `false 2 1 [login] 30m0s`},
		{`{` + login + `,"cost":3}`, `false 2 1 [login] -1`},
		{`{` + login + `}`, `true 2 0 [] 0`},
		{`{` + login + `,"cost":0}`, `true 2 0 [] 0`},
		{`{` + login + `}`, `false 2 0 [login] 30m0s`},
		{`{"method":"GET","path":"/login","client_ip":"192.0.2.7"}`, `true 0 0 [] 0`},
		{`{}`, `true 0 0 [] 0`},
		{`{"path":"/plan","headers":{"x-key":"free"}}`, `true 0 0 [] 0`},
		{`{"path":"/plan","headers":{"x-key":["none","free"]}}`, `false 0 0 [plan] -1`},
		{`{"path":"/plan","headers":{"x-key":"other"}}`, `true 10 9 [] 0`},
		{`{"path":"/paid","headers":{"X-Cost":"7"}}`, `true 10 3 [] 0`},
		{`{"path":"/tried"}`, `true 0 0 [] 0`},
		{`{"path":"/tried"}`, `true 0 0 [] 0`},
	} {
		status, body := post(t, s, "/v1/check", step.body)
		var a struct {
			Allowed          bool
			Limit, Remaining int64
			Denied           []string
			Retry            any `json:"retry_after_us"`
		}
		if err := json.Unmarshal([]byte(steadily(body)), &a); err != nil || status != 200 {
			t.Errorf("%s: %d %s", step.body, status, body)
			continue
		}
		if got := fmt.Sprintf("%v %d %d %v %v", a.Allowed, a.Limit, a.Remaining, a.Denied, a.Retry); got != step.want {
			t.Errorf("%s\n got %s\nwant %s", step.body, got, step.want)
		}
	}
	if s := s.Stats(); s.Allowed != 10 || s.Denied != 4 {
		t.Errorf("counted %+v", s)
	}
}

func TestWhatThePolicyCanNotReadIsTheClientsFault(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/v1/check", strings.NewReader(`{"path":"/paid","headers":{"X-Cost":"much"}}`))
	p := problem(t, send(newServer(ruled(t, nil)), r))
	if p.Status != 400 || p.Field != "header X-Cost" || p.Value != "much" || p.Accepted == "" {
		t.Errorf("got %+v", p)
	}
}

// When the store can't decide, the policies do, and nobody learns why.
func TestChecksWhoseStoreFails(t *testing.T) {
	s := newServer(ruled(t, &failing{memory.New(memory.Options{}), errors.New("dial tcp 10.1.2.3: secret")}))
	for _, step := range []struct {
		body    string
		allowed bool
		local   bool
	}{
		{`{"path":"/work"}`, false, false},
		{`{"path":"/open"}`, true, false},
		{`{"path":"/open"}`, true, false},
		{`{"path":"/here"}`, true, true},
		{`{"path":"/here"}`, false, true},
	} {
		status, body := post(t, s, "/v1/check", step.body)
		var a struct {
			Allowed, Failed bool
			Limits          []struct{ Local bool }
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != 200 || a.Allowed != step.allowed || !a.Failed || a.Limits[0].Local != step.local {
			t.Errorf("%s: %d %s; want allowed %v, local %v", step.body, status, body, step.allowed, step.local)
		}
		if strings.Contains(body, "secret") || strings.Contains(body, "10.1") {
			t.Errorf("%s tells why: %s", step.body, body)
		}
	}
	if s := s.Stats(); s.Undecided != 5 || s.Errors != 0 || s.Allowed != 3 || s.Denied != 2 {
		t.Errorf("counted %+v", s)
	}
}

// tokenOf returns the token of a check that is allowed.
func tokenOf(tb testing.TB, s *httpapi.Server, body string) string {
	tb.Helper()
	status, answer := post(tb, s, "/v1/check", body)
	var a struct {
		Allowed bool
		Token   string
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != 200 || !a.Allowed || a.Token == "" {
		tb.Fatalf("%s: %d %s, want it allowed with a token", body, status, answer)
	}
	return a.Token
}

// settling are the exchanges that settle a token once, and that find it settled.
func settling(t *testing.T, s *httpapi.Server, path, more string) []exchange {
	work := `{"path":"/work","headers":{"X-Key":"` + path + `"}}`
	settle := func(token string, status int) exchange {
		return exchange{"POST", path, "application/json", `{"token":"` + token + `"` + more + `}`, true, status}
	}
	first := tokenOf(t, s, work)
	if path != "/v1/renew" {
		return []exchange{settle(first, 200), settle(first, 409)}
	}
	// A renewal comes too late when another has taken the place.
	if status, body := post(t, s, "/v1/release", `{"token":"`+first+`"}`); status != 200 {
		t.Fatalf("release: %d %s", status, body)
	}
	return []exchange{settle(tokenOf(t, s, work), 200), settle(first, 409)}
}

func TestLeasesAndReservations(t *testing.T) {
	s := newServer(ruled(t, nil))
	ask := func(path, body, want string) string {
		t.Helper()
		status, answer := post(t, s, path, body)
		if got := steadily(answer); status != 200 || !strings.Contains(got, want) {
			t.Fatalf("%s %s: %d %s, want %s", path, body, status, answer, want)
		}
		var a struct{ Token string }
		_ = json.Unmarshal([]byte(answer), &a)
		return a.Token
	}
	busy := func(want string) { t.Helper(); ask("/v1/check", `{"path":"/work"}`, want) }
	token := ask("/v1/check", `{"path":"/work"}`, `"allowed":true`)
	busy(`"allowed":false`)
	renewed := ask("/v1/renew", `{"token":"`+token+`"}`, `{"settled":false,"token":"TOKEN"}`)
	busy(`"allowed":false`)
	ask("/v1/release", `{"token":"`+renewed+`"}`, `{"settled":true}`)
	busy(`"allowed":true`)

	paid := func(want string, cost string) string {
		t.Helper()
		return ask("/v1/check", `{"path":"/paid","hold_ms":60000,"cost":`+cost+`}`, want)
	}
	a, b := paid(`"remaining":5,`, "5"), paid(`"remaining":1,`, "4")
	ask("/v1/commit", `{"token":"`+a+`","cost":2}`, `{"settled":true}`)
	c := paid(`"remaining":3,`, "1")
	ask("/v1/cancel", `{"token":"`+b+`"}`, `{"settled":true}`)
	ask("/v1/release", `{"token":"`+c+`"}`, `{"settled":true}`)
	ask("/v1/check", `{"path":"/paid","cost":0}`, `"remaining":7,`)
	d := ask("/v1/renew", `{"token":"`+paid(`"remaining":2,`, "5")+`"}`, `{"settled":false,"token":"TOKEN"}`)
	ask("/v1/cancel", `{"token":"`+d+`"}`, `{"settled":true}`)
	if status, answer := post(t, s, "/v1/commit", `{"token":"`+d+`","cost":4,"late":false}`); status != 409 {
		t.Errorf("commit of nothing: %d %s", status, answer)
	}
	ask("/v1/commit", `{"token":"`+d+`","cost":4,"late":true}`, `{"settled":true}`)
	ask("/v1/check", `{"path":"/paid","cost":0}`, `"remaining":3,`)
}

func TestExplanations(t *testing.T) {
	s := newServer(ruled(t, nil), admin)
	body := `{"method":"POST","path":"/login","client_ip":"192.0.2.7","cost":3}`
	for range 2 { // nothing changes
		status, got := post(t, s, "/v1/explain", body)
		for _, want := range []string{
			`{"allowed":false,`, `"denied":["login"]`, `"retry_after_us":-1`, `"name":"login","matched":true`, `"limit":"2/1h","role":"enforced"`, `"remaining":2`,
			`"role":"candidate"`, `{"name":"work","matched":false,"mismatch":{"field":"path","want":"/work","found":"/login"}`,
		} {
			if status != 200 || !strings.Contains(got, want) {
				t.Errorf("%d %s\nhas no %s", status, got, want)
			}
		}
	}
}

// warned is a server with something to warn of.
func warned(o *httpapi.Options) {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Status = func() httpapi.Status {
		return httpapi.Status{
			Version: "v1", Store: "redis", Started: at,
			Users:       &httpapi.UsersStatus{Source: "users", Users: 2, Change: httpapi.Change{Loaded: at, Refused: "users:1: no", RefusedSince: at}},
			Certificate: &httpapi.CertificateStatus{Names: []string{"weir"}, Expires: at, Soon: true, Change: httpapi.Change{Loaded: at, Refused: "no", RefusedSince: at}},
			Config:      &httpapi.ConfigStatus{Source: "weir.yaml", Policies: 2, Change: httpapi.Change{Loaded: at, Refused: "weir.yaml:1:1: no", RefusedSince: at}},
			Clients: &httpapi.ClientsStatus{
				Database: "sqlite:c.db", Clients: 3, Change: httpapi.Change{Loaded: at, Refused: "bad", RefusedSince: at}, Away: "gone", AwaySince: at, BadRows: 2, BadRowsSince: at, BadRowErrors: []string{"client #1f3a9c02: no"}, FromSnapshot: at, Saved: at, SaveError: "full",
			},
		}
	}
}

func TestWarnings(t *testing.T) {
	get := func(s *httpapi.Server, path string) string {
		return read(t, send(s, httptest.NewRequest(http.MethodGet, path, nil)))
	}
	want := "ok\nwarning: the last change of the users is refused\nwarning: the certificate expires within 7 days\nwarning: the last change of the certificate is refused\n" +
		"warning: the last change of the policies is refused\nwarning: the database of clients is away\nwarning: rows of the clients make no sense\nwarning: the last change of the clients is refused\n" +
		"warning: the clients are those of the snapshot\nwarning: the snapshot of the clients can't be written\n"
	if got := get(newServer(warned, admin), "/readyz"); got != want {
		t.Errorf("/readyz: %q, want %q", got, want)
	}
	if got := get(newServer(warned), "/readyz"); got != "ok\n" {
		t.Errorf("/readyz for clients: %q, want ok alone", got)
	}
	if got := get(newServer(warned, admin), "/v1/status"); !strings.Contains(got, `"config":{"source":"weir.yaml","policies":2,"loaded":"2025-01-01T00:00:00Z","refused":"weir.yaml:1:1: no"`) {
		t.Errorf("/v1/status: %s", got)
	}
	gone := func(o *httpapi.Options) { o.Ready = func(context.Context) error { return errors.New("no store") } }
	if got := get(newServer(warned, gone, admin), "/readyz"); !strings.Contains(got, `"detail":"the store can't be reached; the last change of the users is refused; the certificate expires within 7 days; `) {
		t.Errorf("/readyz without a store: %s", got)
	}
	if got := get(newServer(warned, gone), "/readyz"); !strings.Contains(got, `"detail":"not ready"`) {
		t.Errorf("/readyz without a store, for clients: %s", got)
	}
	if got := get(newServer(admin), "/v1/status"); !strings.HasPrefix(got, `{"version":"","store":"","started":"`) || strings.Contains(got, "config") {
		t.Errorf("/v1/status of a server that has nothing to tell: %s", got)
	}
}
