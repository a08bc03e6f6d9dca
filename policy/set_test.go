package policy_test

import (
	"context"
	"net/http"
	"net/netip"
	"testing"

	"github.com/weirlimit/weir/policy"
)

const issueYAML = `
policies:
  - name: login
    match: {method: POST, path: /login}
    key: [client_ip, "header:X-User"]
    limits: ["5/1m", "20/1h"]
    on_store_error: deny                # or allow, or local
  - name: api
    match: {path: "/api/**", not: {header: {X-Internal: "*"}}}
    key: ["header:X-API-Key", client_ip]   # a list combines; "a|b" takes the first present
    cost: 1                              # or header:X-Cost, or per method
    limits: ["100/1m", "5/1s"]
    plans: {gold: ["1000/1m", "50/1s"], blocked: deny, internal: unlimited}
    mode: enforce                        # or shadow: decide, count, never deny
    candidate: ["sliding-window 80/1m"]  # decided beside the enforced ones, only counted
`

func newSet(t *testing.T, text string, o policy.Options) *policy.Set {
	t.Helper()
	c, err := policy.Parse([]byte(text), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *policy.Set, r *policy.Request) policy.Decision {
	t.Helper()
	d, err := s.Check(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCheckOfTheSample(t *testing.T) {
	s := newSet(t, issueYAML, policy.Options{})
	login := &policy.Request{Method: "POST", Path: "/login", ClientIP: netip.MustParseAddr("::ffff:192.0.2.1"), Header: http.Header{"X-User": {"alice"}}}
	for i := range 6 {
		d := check(t, s, login)
		if want := i < 5; d.Allowed != want || len(d.Each) != 2 || d.Each[0].Key != "192.0.2.1,alice" {
			t.Fatalf("decision %d is %+v", i, d)
		}
	}
	if d := check(t, s, &policy.Request{Path: "/"}); !d.Allowed || len(d.Each) != 0 || d.Limit != 0 {
		t.Errorf("a request that nothing matches has %+v", d)
	}
	d := check(t, s, &policy.Request{Method: "GET", Path: "/api/v1/x", Header: http.Header{"X-Api-Key": {"k1"}}})
	if !d.Allowed || len(d.Each) != 3 || d.Remaining != 4 || d.Each[2].Role != policy.Candidate || d.Each[2].Remaining != 79 || d.Each[0].Key != "k1,-" {
		t.Errorf("the decision is %+v", d)
	}
	if d := check(t, s, &policy.Request{Path: "/api/v1", Header: http.Header{"X-Internal": {""}}}); len(d.Each) != 0 {
		t.Errorf("an internal request has %+v", d)
	}
}
