package admission_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// plans are clients with plans.
type plans map[string]string

func (p plans) Grant(client string) (*policy.Grant, bool) {
	plan, ok := p[client]
	return &policy.Grant{Plan: plan}, ok
}

func (p plans) Grants(f func(*policy.Grant) error) error {
	for _, plan := range p {
		if err := f(&policy.Grant{Plan: plan}); err != nil {
			return err
		}
	}
	return nil
}

const sample = `
policies:
  - {name: api, match: {path: "/api/**"}, key: ["attribute:who"], limits: [fixed-window 3/24h, {name: day, limit: fixed-window 5/24h}], plans: {free: unlimited, out: deny, more: [fixed-window 4/24h]}}
  - {name: cost, match: {path: /api/cost}, key: all, cost: "header:X-Cost", limits: [fixed-window 9/24h]}
  - {name: late, match: {path: /api/cost}, key: all, cost: 1, limits: [fixed-window 4/24h]}
  - {name: watch, key: all, limits: [fixed-window 1/24h], mode: shadow}
`

func TestOutcomesOfPolicies(t *testing.T) {
	set := policies(t, sample, policy.Options{Clients: plans{"fay": "free", "eve": "out", "moe": "more"}})
	g := gate(t, set, admission.Options{Attributes: map[string]identity.Source{"who": identity.Header("Who"), "none": identity.Header("None")}})
	for _, c := range []struct {
		path, who, cost string
		want            admission.Outcome
		told, violated  []string
	}{
		{"/", "bob", "", admission.Admitted, nil, nil},
		{"/api/x", "bob", "", admission.Admitted, []string{"api/1", "api/day"}, nil},
		{"/api/x", "bob", "", admission.Admitted, []string{"api/1", "api/day"}, nil},
		{"/api/x", "bob", "", admission.Admitted, []string{"api/1", "api/day"}, nil},
		{"/api/x", "bob", "", admission.Denied, []string{"api/1!", "api/day"}, []string{"api/1"}},
		{"/api/x", "fay", "", admission.Admitted, nil, nil},
		{"/api/cost", "fay", "6", admission.Admitted, []string{"cost", "late"}, nil},
		{"/api/cost", "fay", "9", admission.Denied, []string{"cost!", "late"}, []string{"cost"}},
		{"/api/cost", "moe", "10", admission.Excessive, []string{"api", "cost!", "late"}, []string{"cost"}},
		{"/api/cost", "bob", "10", admission.Excessive, []string{"api/1!", "api/day", "cost!", "late"}, []string{"api/1", "cost"}},
		{"/api/cost", "fay", "1", admission.Admitted, []string{"cost", "late"}, nil},
		{"/api/cost", "fay", "1", admission.Admitted, []string{"cost", "late"}, nil},
		{"/api/cost", "fay", "1", admission.Admitted, []string{"cost", "late"}, nil},
		{"/api/cost", "fay", "10", admission.Excessive, []string{"cost!", "late!"}, []string{"cost", "late"}},
		{"/api/cost", "moe", "-1", admission.Invalid, nil, nil},
		{"/api/x", "eve", "", admission.Forbidden, nil, []string{"api"}},
		{"/api/cost", "eve", "10", admission.Forbidden, []string{"cost!", "late!"}, []string{"api", "cost", "late"}},
		{"/api/x", "moe", "", admission.Admitted, []string{"api"}, nil},
	} {
		a := g.Admit(request(c.path, "Who", c.who, "X-Cost", c.cost))
		wantOutcome(t, a, c.want)
		wantEach(t, a, c.told...)
		if got := slices.Collect(a.Violated()); !slices.Equal(got, c.violated) {
			t.Errorf("%s of %s: violated are %q, want %q", c.path, c.who, got, c.violated)
		}
		var wrong *policy.RequestError
		if errors.As(a.Err, &wrong) != (c.want == admission.Invalid) {
			t.Errorf("the error is %v", a.Err)
		}
	}
}

// What the request says reaches the policies: method, host, path, query, header, address, cost.
func TestRequestsOfPolicies(t *testing.T) {
	set := policies(t, `
policies:
  - {name: all, match: {method: POST, host: example.org, path: /a b, query: {q: "1"}, header: {X-A: b}, client_ip: 198.51.100.7}, key: all, limits: [100/24h]}
`, policy.Options{})
	behind, err := identity.Behind("X-Forwarded-For", "192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	g := gate(t, set, admission.Options{ClientIP: behind, Cost: costs(7)})
	r, err := http.NewRequest(http.MethodPost, "http://example.org/a%20b?q=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("X-Forwarded-For", "198.51.100.7")
	r.Header.Set("X-A", "b")
	if a := g.Admit(r); a.Decision.Remaining != 93 {
		t.Errorf("the decision is %+v", a.Decision)
	}
	for _, cost := range []int64{-1, policy.MaxCost + 1} {
		wantOutcome(t, gate(t, set, admission.Options{ClientIP: behind, Cost: costs(cost)}).Admit(r), admission.Invalid)
	}
}

// Pitfall H6 for policies: a denial because of the store is no denial, what is known counts before it, and nothing is told of what is not known.
func TestH6PoliciesWithoutAStore(t *testing.T) {
	set := policies(t, `
policies:
  - {name: deny, match: {path: [/deny, /mixed, /plan]}, key: all, limits: [5/24h]}
  - {name: allow, match: {path: [/allow, /mixed]}, key: all, limits: [5/24h], on_store_error: allow}
  - {name: local, match: {path: [/local, /mixed]}, key: all, limits: [1/24h, concurrent 2 lease=1h], on_store_error: local}
  - {name: plan, match: {path: /plan}, key: ["attribute:who"], plans: {out: deny}}
`, policy.Options{Store: &failingStore{}, Clients: plans{"eve": "out"}})
	g := gate(t, set, admission.Options{Attributes: map[string]identity.Source{"who": identity.Header("Who")}, Log: silent})
	for _, c := range []struct {
		path string
		want admission.Outcome
		told []string
	}{
		{"/deny", admission.Undecided, nil},
		{"/allow", admission.Admitted, nil},
		{"/mixed", admission.Undecided, []string{"local/1", "local/2"}},
		{"/local", admission.Admitted, []string{"local/1", "local/2"}},
		{"/local", admission.Denied, []string{"local/1!", "local/2"}},
		{"/mixed", admission.Denied, []string{"local/1!", "local/2"}},
		{"/plan", admission.Forbidden, nil},
	} {
		a := g.Admit(request(c.path, "Who", "eve"))
		wantOutcome(t, a, c.want)
		wantEach(t, a, c.told...)
		violated := slices.Collect(a.Violated())
		if want := map[admission.Outcome][]string{admission.Denied: {"local/1"}, admission.Forbidden: {"plan"}}[c.want]; !slices.Equal(violated, want) {
			t.Errorf("%s: violated are %q, want %q", c.path, violated, want)
		}
		if a.Err == nil || c.want == admission.Undecided && a.Decision.RetryAfter != time.Second {
			t.Errorf("%s: %+v, error %v", c.path, a.Decision, a.Err)
		}
		if c.want == admission.Admitted && c.told != nil { // a lease of this process
			if !a.Held() {
				t.Errorf("%s holds nothing", c.path)
			}
			a.Finish(status(200))
		}
	}
}

// A set whose file changes under it: the names stay, and the requests under way are settled.
func TestPoliciesThatChange(t *testing.T) {
	set := policies(t, "policies: [{name: p, key: all, limits: [fixed-window 10/24h]}]", policy.Options{})
	g := gate(t, set, admission.Options{Charge: admission.Size})
	a := g.Admit(request("/"))
	next, err := policy.Parse([]byte("policies: [{name: p, key: all, limits: [fixed-window 20/24h]}]"), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Replace(next); err != nil {
		t.Fatal(err)
	}
	a.Finish(admission.Response{Bytes: 5})
	a = g.Admit(request("/"))
	if wantEach(t, a, "p"); a.Decision.Remaining != 14 || a.Decision.Limit != 20 {
		t.Errorf("the decision is %+v", a.Decision)
	}
}
