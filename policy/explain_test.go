package policy_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

const explainYAML = `
policies:
  - {name: login, match: {method: POST, path: /login}, key: [client_ip, "header:X-User"], limits: [fixed-window 2/1h]}
  - name: api
    match: [{path: "/api/**", not: {header: {X-Internal: "*"}}}, {path: /login, host: [a.com, "*.a.com"]}]
    key: "header:X-API-Key"
    cost: 3
    limits: [100/1m]
    plans: {gold: [fixed-window 12/1h, {name: jobs, limit: concurrent 1 lease=1m}], blocked: deny}
    candidate: [fixed-window 2/1h]
  - {name: all, key: all, limits: [fixed-window 1000/1h], mode: shadow}
`

func explain(t *testing.T, s *policy.Set, r *policy.Request) (text string, x *policy.Explanation) {
	t.Helper()
	x, err := s.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := x.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), x
}

func TestExplain(t *testing.T) {
	s := newTimed(t, explainYAML, policy.Options{Clients: staticClients{"k": plan("gold"), "bad": plan("blocked")}})
	post := request("POST /login")
	post.Header = http.Header{"X-User": {"bob"}, "X-Api-Key": {"k"}}
	post.Host = "www.a.com"
	for range 3 {
		check(t, s.Set, post)
	}
	s.wait(time.Minute)
	for _, c := range []struct {
		r    *policy.Request
		want string
	}{
		{post, `allowed

login matches
  key      192.0.2.1,#81b637d8
  client   client_ip=192.0.2.1
  plan     none: the client has no plan; the default limits apply
  cost     1
  limit    fixed-window 2/1h: 1 of 2 remain, would allow

api matches
  key      #8254c329
  client   header:X-Api-Key=#8254c329
  plan     gold: the client has the plan
  cost     3
  limit    fixed-window 12/1h: 9 of 12 remain, would allow
  limit    concurrent 1 lease=1m: 1 of 1 remain, would allow

all matches
  mode     shadow: it never denies
  key      all, as one
  plan     none: the policy knows no clients
  cost     1
  limit    fixed-window 1000/1h (shadow): 999 of 1000 remain, would allow
`},
		{&policy.Request{Method: "GET", Path: "/api/x", Header: http.Header{"X-Api-Key": {"bad"}}}, `denied by api; next allowed never

login does not match: path is /api/x, and would have to be /login

api matches
  key      #2f05d4b6
  client   header:X-Api-Key=#2f05d4b6
  plan     blocked: the client has the plan
  cost     3
  limit    deny
`},
		{&policy.Request{Method: "GET", Path: "/api/x", Header: http.Header{"X-Api-Key": {"other"}}}, `allowed

login does not match: path is /api/x, and would have to be /login

api matches
  key      #d9298a10
  client   header:X-Api-Key=#d9298a10
  plan     none: the client has no plan; the default limits apply
  cost     3
  limit    100/1m: 100 of 100 remain, would allow
  limit    fixed-window 2/1h (candidate): 2 of 2 remain, would deny; next allowed never
`},
		{&policy.Request{Method: "GET", Path: "/api/x", Header: http.Header{"X-Internal": {"1"}}}, `allowed

login does not match: path is /api/x, and would have to be /login

api does not match: it is not for header X-Internal *
`},
		{&policy.Request{Method: "GET", Path: "/login", Host: "b.com"}, `allowed

login does not match: method is GET, and would have to be POST

api does not match: host is b.com, and would have to be a.com or *.a.com
`},
	} {
		text, _ := explain(t, s.Set, c.r)
		if !strings.Contains(c.want, "\nall ") {
			text, _, _ = strings.Cut(text, "\nall ")
		}
		if text != c.want {
			t.Errorf("%s %s\n%s\nwant\n%s", c.r.Method, c.r.Path, text, c.want)
		}
	}
}

// What Explain says is what Check then does, and it changes nothing.
func TestExplainSaysWhatCheckDoes(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: a, key: client_ip, limits: [10/1m, sliding-window 30/1h, concurrent 12 lease=20s], cost: "attribute:n"}
  - {name: b, match: {path: /b}, key: client_ip, limits: [gcra 6/1m burst=2, exponential 20/1m, leaky-queue 10/1m]}
`, policy.Options{})
	allowed, denied := 0, 0
	for i := range 400 {
		r := request("GET /"+[]string{"a", "b"}[i/3%2], "n="+[]string{"1", "2", "3", "20"}[i*7%11%4])
		_, x := explain(t, s.Set, r)
		_, again := explain(t, s.Set, r)
		if d := check(t, s.Set, r); d.Allowed != x.Allowed || d.RetryAfter != x.RetryAfter || again.RetryAfter != x.RetryAfter {
			t.Fatalf("request %d: explained %+v, checked %+v", i, x, d)
		} else if d.Allowed {
			allowed++
		} else {
			denied++
		}
		s.wait(time.Duration(i*i%7) * time.Second)
	}
	if allowed == 0 || denied == 0 {
		t.Errorf("%d allowed, %d denied; want both", allowed, denied)
	}
}

func TestExplanationAsJSON(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, match: {path: /x}, key: client_ip, limits: [fixed-window 2/1h]}, {name: b, key: client_ip, limits: [fixed-window 1/1h]}]", policy.Options{})
	s.check("GET /")
	_, x := explain(t, s.Set, request("GET /"))
	data, err := json.Marshal(x)
	want := `{"allowed":false,"denied":["b"],"policies":[` +
		`{"name":"a","matched":false,"mismatch":{"field":"path","want":"/x","found":"/"},"cost":0},` +
		`{"name":"b","matched":true,"mode":"enforce","key":"192.0.2.1","plan_reason":"there are no clients; the default limits apply","cost":1,"on_store_error":"deny",` +
		`"limits":[{"limit":"fixed-window 1/1h","role":"enforced","key":"192.0.2.1","cost":1,"allowed":false,"capacity":1,"remaining":0,"retry_after_us":3600000000,"reset_after_us":3600000000,"delay_us":0}]}],` +
		`"retry_after_us":3600000000}`
	if err != nil || string(data) != want {
		t.Errorf("%s\nwant\n%s\nerror %v", data, want, err)
	}
	cost := int64(2)
	r := request("GET /")
	r.Cost = &cost
	if _, x = explain(t, s.Set, r); x.RetryAfter != weir.Never {
		t.Errorf("%+v", x)
	}
	if data, err = json.Marshal(x); err != nil || !strings.HasSuffix(string(data), `"retry_after_us":-1}`) {
		t.Errorf("%s, error %v", data, err)
	}
}
