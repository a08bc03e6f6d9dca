package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store/memory"
)

// A timed set tells its own time.
type timed struct {
	*policy.Set
	t   *testing.T
	now time.Time
}

func newTimed(t *testing.T, text string, o policy.Options) *timed {
	t.Helper()
	s := &timed{t: t, now: time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)}
	o.Clock = func() time.Time { return s.now }
	s.Set = newSet(t, text, o)
	return s
}

func (s *timed) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *timed) replace(text string) {
	s.t.Helper()
	c, err := policy.Parse([]byte(text), "weir.yaml")
	if err == nil {
		err = s.Replace(c)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// check takes one request at "METHOD /path", with attributes as name=value.
func (s *timed) check(line string, attributes ...string) policy.Decision {
	s.t.Helper()
	return check(s.t, s.Set, request(line, attributes...))
}

func request(line string, attributes ...string) *policy.Request {
	method, path, _ := strings.Cut(line, " ")
	r := &policy.Request{Method: method, Path: path, ClientIP: netip.MustParseAddr("192.0.2.1"), Header: http.Header{}, Attributes: map[string]string{}}
	for _, a := range attributes {
		name, value, _ := strings.Cut(a, "=")
		r.Attributes[name] = value
	}
	return r
}

// remaining lists what remains of each limit.
func remaining(d policy.Decision) (list []int64) {
	for _, l := range d.Each {
		list = append(list, l.Remaining)
	}
	return list
}

func wantRemaining(t *testing.T, d policy.Decision, allowed bool, want ...int64) {
	t.Helper()
	if got := remaining(d); d.Allowed != allowed || !slices.Equal(got, want) {
		t.Fatalf("allowed %v, remaining %v; want %v, %v", d.Allowed, got, allowed, want)
	}
}

// staticClients have their plans or limits by name.
type staticClients map[string]*policy.Grant

func (c staticClients) Grant(client string) (*policy.Grant, bool) {
	g, ok := c[client]
	return g, ok
}

func (c staticClients) Grants(f func(*policy.Grant) error) error {
	for _, g := range c {
		if err := f(g); err != nil {
			return err
		}
	}
	return nil
}

func plan(name string) *policy.Grant { return &policy.Grant{Plan: name} }

func own(by string, texts ...string) *policy.Grant {
	g := &policy.Grant{Limits: map[string][]weir.Limit{}}
	for _, text := range texts {
		g.Limits[by] = append(g.Limits[by], weir.MustParseLimit(text))
	}
	return g
}

// S5 multi-limit: 10/s ∧ 15/min: once the minute is empty, 100 denials leave the second bucket full.
func TestS5DenialsLeaveTheOtherLimitsFull(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: second, key: client_ip, limits: [10/1s]}
  - {name: minute, key: client_ip, limits: [fixed-window 15/1m]}
`, policy.Options{})
	for range 2 {
		for range 10 {
			s.check("GET /")
		}
		s.wait(time.Second)
	}
	for i := range 100 {
		d := s.check("GET /")
		wantRemaining(t, d, false, 10, 0)
		if !slices.Equal(d.Denied, []string{"minute"}) || !d.Each[0].Allowed || d.RetryAfter != d.Each[1].RetryAfter || d.RetryAfter != 58*time.Second || d.Limit != 15 {
			t.Fatalf("denial %d is %+v", i, d)
		}
	}
}

// S6 multi-limit locks: the same limit twice, and requests that name the same limits in opposite order: no deadlock, charged once.
func TestS6OppositeOrders(t *testing.T) {
	const each = 50_000
	a := "  - {name: a, key: client_ip, limits: [fixed-window 1000000/24h, fixed-window 1000000/24h]}\n"
	b := "  - {name: b, key: 'attribute:user', limits: [1000000/24h, fixed-window 1000000/24h]}\n"
	o := policy.Options{Store: memory.New(memory.Options{})}
	sets := []*policy.Set{newSet(t, "policies:\n"+a+b, o), newSet(t, "policies:\n"+b+a, o)}
	var wg sync.WaitGroup
	for _, s := range sets {
		wg.Go(func() {
			for range each {
				if d, err := s.Check(context.Background(), request("GET /", "user=u")); err != nil || !d.Allowed {
					t.Errorf("%+v, error %v", d, err)
					return
				}
			}
		})
	}
	wg.Wait()
	zero := int64(0)
	r := request("GET /", "user=u")
	r.Cost = &zero
	for _, l := range check(t, sets[0], r).Each {
		if want := int64(1_000_000 - 2*each); l.Limit.Algorithm == weir.FixedWindow && l.Remaining != want {
			t.Errorf("of %s %v there remain %d, want %d", l.Policy, l.Limit, l.Remaining, want)
		}
	}
}

// S18 limit change: through the YAML. What was used stays used, whatever changes of the limit; its name says which it is.
func TestS18WhatWasUsedStaysUsed(t *testing.T) {
	policies := func(limits string) string {
		return "policies: [{name: a, key: client_ip, limits: " + limits + "}]"
	}
	s := newTimed(t, policies("[fixed-window 10/1h]"), policy.Options{})
	for range 10 {
		s.check("GET /")
	}
	for _, step := range []struct {
		limits string
		left   []int64
	}{
		{"[fixed-window 20/1h]", []int64{10}},                              // raised
		{"[fixed-window 10/1h]", []int64{0}},                               // lowered
		{"[fixed-window 20/1h]", []int64{10}},                              // and raised
		{"[fixed-window 5/1h]", []int64{0}},                                // lowered below what was used
		{"[fixed-window 20/1h]", []int64{10}},                              // and raised: to and fro gives nothing
		{"[sliding-log 15/1h]", []int64{5}},                                // another algorithm
		{"[100/1h]", []int64{90}},                                          // and another
		{"[{name: x, limit: 100/1h}]", []int64{100}},                       // another name is another budget
		{"[fixed-window 5/1m, {name: x, limit: 200/1h}]", []int64{0, 200}}, // in another place under its name; the first is as it was
		{"[{name: x, limit: 100/1h}, 50/1h]", []int64{100, 50}},            // a second one is new
		{"[100/1h]", []int64{90}},                                          // the first is still there
	} {
		s.replace(policies(step.limits))
		zero := int64(0)
		r := request("GET /")
		r.Cost = &zero
		if got := remaining(check(t, s.Set, r)); !slices.Equal(got, step.left) {
			t.Errorf("under %s there remain %v, want %v", step.limits, got, step.left)
		}
	}
}

// S18 limit change: also when each change is followed by requests, nothing is given that was not there.
func TestS18ChangesToAndFroGiveNothing(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, key: client_ip, limits: [fixed-window 10/24h]}]", policy.Options{})
	allowed := 0
	for _, limit := range []string{"10", "20", "10", "20", "5", "20", "10", "20"} {
		s.replace("policies: [{name: a, key: client_ip, limits: [fixed-window " + limit + "/24h]}]")
		for range 30 {
			if s.check("GET /").Allowed {
				allowed++
			}
		}
	}
	if allowed != 20 {
		t.Errorf("%d requests were allowed under at most 20", allowed)
	}
}

const plansYAML = `
policies:
  - name: api
    key: ["attribute:key"]
    limits: [fixed-window 10/1h, {name: day, limit: fixed-window 100/24h}]
    plans:
      gold: [fixed-window 20/1h, fixed-window 200/24h]
      blocked: deny
      internal: unlimited
  - name: all
    key: ["attribute:key"]
    limits: [fixed-window 1000/1h]
`

func TestPlans(t *testing.T) {
	clients := staticClients{
		"gold": plan("gold"), "bad": plan("blocked"), "us": plan("internal"), "own": own("", "fixed-window 3/1h"), "for all": own("all", "fixed-window 4/1h"),
	}
	s := newTimed(t, plansYAML, policy.Options{Clients: clients})
	wantRemaining(t, s.check("GET /", "key=somebody"), true, 9, 99, 999)
	wantRemaining(t, s.check("GET /"), true, 9, 99, 999)
	wantRemaining(t, s.check("GET /", "key=gold"), true, 19, 199, 999)
	wantRemaining(t, s.check("GET /", "key=own"), true, 2, 999)
	wantRemaining(t, s.check("GET /", "key=for all"), true, 9, 99, 3)
	d := s.check("GET /", "key=us")
	wantRemaining(t, d, true, 0, 999)
	if d.Limit != 1000 || d.Remaining != 999 || d.Each[0].Plan != "internal" || !d.Each[0].Allowed {
		t.Errorf("unlimited under one policy is %+v", d)
	}
	for range 2 { // and nothing is charged
		d = s.check("GET /", "key=bad")
		wantRemaining(t, d, false, 0, 1000)
		if d.RetryAfter != weir.Never || !slices.Equal(d.Denied, []string{"api"}) || d.Each[0].Plan != "blocked" || !d.Each[1].Allowed {
			t.Errorf("denied by a plan is %+v", d)
		}
	}
	// A client that changes its plan keeps what it has used: of the limit in the same place, also if only one of both has a name.
	clients = staticClients{"gold": own("api", "fixed-window 8/1h", "fixed-window 50/24h"), "somebody": plan("gold")}
	if err := s.UseClients(clients); err != nil {
		t.Fatal(err)
	}
	wantRemaining(t, s.check("GET /", "key=gold"), true, 6, 48, 998)
	wantRemaining(t, s.check("GET /", "key=somebody"), true, 18, 198, 998)
}

// A candidate stands beside the default limits: clients with a plan, or limits of their own, have no part in it.
func TestCandidateIsForTheDefaultLimits(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: a, key: "attribute:key", limits: [fixed-window 9/1h], plans: {gold: [fixed-window 20/1h], free: unlimited}, candidate: [fixed-window 5/1h]}
`, policy.Options{Clients: staticClients{"gold": plan("gold"), "free": plan("free"), "own": own("a", "fixed-window 3/1h")}})
	wantRemaining(t, s.check("GET /", "key=gold"), true, 19)
	wantRemaining(t, s.check("GET /", "key=free"), true, 0)
	wantRemaining(t, s.check("GET /", "key=own"), true, 2)
	wantRemaining(t, s.check("GET /", "key=other"), true, 8, 4)
}

func TestUseClientsRefusesWhatMakesNoSense(t *testing.T) {
	s := newTimed(t, plansYAML, policy.Options{Clients: staticClients{"a": plan("gold")}})
	for want, clients := range map[string]staticClients{
		`weir: plan "silver" is of no policy; accepted: blocked, gold, internal`:       {"secret": plan("silver")},
		`weir: a client has limits for "apis", which is no policy; accepted: all, api`: {"secret": own("apis", "1/1s")},
		`weir: a client has 17 limits for one policy; accepted: at most 16`:            {"secret": own("api", strings.Split(strings.Repeat(",1/1s", 17)[1:], ",")...)},
		`weir: a client's limit "0/1s" for "api": weir: limit has count 0`:             {"secret": &policy.Grant{Limits: map[string][]weir.Limit{"api": {{Count: 0, Period: time.Second}}}}},
	} {
		if err := s.UseClients(clients); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
	status := s.Status().Clients
	if status.Err == nil || status.Loaded.IsZero() || status.Failed.IsZero() {
		t.Errorf("the status is %+v", status)
	}
	wantRemaining(t, s.check("GET /", "key=a"), true, 19, 199, 999) // nothing was applied
	if err := s.UseClients(nil); err != nil || s.Status().Clients.Err != nil {
		t.Errorf("nobody: %v, %+v", err, s.Status().Clients)
	}
	wantRemaining(t, s.check("GET /", "key=a"), true, 8, 98, 998)
}

// A configuration that does not have a plan that a client has is refused.
func TestReplaceLooksAtTheClients(t *testing.T) {
	s := newTimed(t, plansYAML, policy.Options{Clients: staticClients{"a": plan("gold")}})
	c, err := policy.Parse([]byte(strings.ReplaceAll(plansYAML, "gold", "silver")), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(c); err == nil || !strings.Contains(err.Error(), `plan "gold" is of no policy; accepted: blocked, internal, silver`) {
		t.Errorf("error %v", err)
	}
	if _, err := policy.New(c, policy.Options{Clients: staticClients{"a": plan("gold")}}); err == nil {
		t.Error("New takes it")
	}
	wantRemaining(t, s.check("GET /", "key=a"), true, 19, 199, 999)
}

func TestShadowsAndCandidatesNeverDeny(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: shadow, key: client_ip, limits: [fixed-window 2/1h, fixed-window 1000/1h], mode: shadow}
  - {name: enforced, match: {path: /e}, key: client_ip, limits: [fixed-window 5/1h], candidate: [fixed-window 3/1h]}
  - {name: other, match: {method: PUT}, key: client_ip, limits: [fixed-window 1/1h]}
`, policy.Options{})
	wantRemaining(t, s.check("GET /e"), true, 1, 999, 4, 2)
	wantRemaining(t, s.check("GET /e"), true, 0, 998, 3, 1)
	d := s.check("GET /e") // the shadow would deny: none of its limits is charged; the candidate sees what its policy sees
	wantRemaining(t, d, true, 0, 998, 2, 0)
	if d.Denied != nil || d.Limit != 5 || d.Each[0].Allowed || d.Each[0].Role != policy.Shadow || d.Each[0].RetryAfter != time.Hour || d.Each[3].Role != policy.Candidate {
		t.Errorf("the decision is %+v", d)
	}
	wantRemaining(t, s.check("PUT /e"), true, 0, 998, 1, 0, 0)
	wantRemaining(t, s.check("PUT /e"), false, 0, 998, 1, 0, 0) // denied by another: neither is charged
	wantRemaining(t, s.check("GET /e"), true, 0, 998, 0, 0)
	wantRemaining(t, s.check("GET /e"), false, 0, 998, 0, 0)
	wantRemaining(t, s.check("GET /"), true, 0, 998)
	want := []policy.Stats{
		{Policy: "shadow", Checked: 8, ShadowDenied: 6},
		{Policy: "enforced", Checked: 7, Allowed: 6, Denied: 1, CandidateDenied: 4},
		{Policy: "other", Checked: 2, Allowed: 1, Denied: 1},
	}
	if got := s.Stats(); !slices.Equal(got, want) {
		t.Errorf("counts %+v\nwant   %+v", got, want)
	}
}

// A candidate that is stricter than what is enforced is charged for what it would let pass.
func TestCandidateSeesWhatItsPolicySees(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, key: client_ip, limits: [fixed-window 1/1h], candidate: [fixed-window 3/1h]}]", policy.Options{})
	wantRemaining(t, s.check("GET /"), true, 0, 2)
	wantRemaining(t, s.check("GET /"), false, 0, 1) // the candidate would have let it pass
	wantRemaining(t, s.check("GET /"), false, 0, 0)
	if got := s.Stats()[0]; got != (policy.Stats{Policy: "a", Checked: 3, Allowed: 1, Denied: 2}) {
		t.Errorf("counts %+v", got)
	}
}

func TestCosts(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: fixed, match: {path: /fixed}, key: client_ip, limits: [fixed-window 10/1h], cost: 3}
  - {name: header, match: {path: /header}, key: client_ip, limits: [fixed-window 10/1h], cost: "header:x-cost"}
  - {name: attribute, match: {path: /attribute}, key: client_ip, limits: [fixed-window 10/1h], cost: "attribute:n"}
  - {name: methods, match: {path: /methods}, key: client_ip, limits: [fixed-window 10/1h], cost: {GET: 2, Post: 4, HEAD: 0, "*": 1}}
`, policy.Options{})
	wantRemaining(t, s.check("GET /fixed"), true, 7)
	r := request("GET /header")
	wantRemaining(t, check(t, s.Set, r), true, 9)
	r.Header.Set("X-Cost", " 4 ")
	wantRemaining(t, check(t, s.Set, r), true, 5)
	r.Header.Set("X-Cost", "6")
	wantRemaining(t, check(t, s.Set, r), false, 5)
	r.Header.Set("X-Cost", "11")
	if d := check(t, s.Set, r); d.RetryAfter != weir.Never {
		t.Errorf("above the capacity it may come back %v", d.RetryAfter)
	}
	wantRemaining(t, s.check("GET /attribute"), true, 9)
	wantRemaining(t, s.check("GET /attribute", "n=5"), true, 4)
	wantRemaining(t, s.check("GET /attribute", "n=0"), true, 4)
	wantRemaining(t, s.check("get /methods"), true, 8)
	wantRemaining(t, s.check("POST /methods"), true, 4)
	wantRemaining(t, s.check("PUT /methods"), true, 3)
	wantRemaining(t, s.check("HEAD /methods"), true, 3)
	for _, value := range []string{"", "x", "-1", "+1", "0", "1.5", "9007199254740993", "1, 2"} {
		r.Header.Set("X-Cost", value)
		_, err := s.Check(t.Context(), r)
		var wrong *policy.RequestError
		if !errors.As(err, &wrong) || wrong.Field != "header X-Cost" || wrong.Value != value {
			t.Errorf("of a cost of %q the error is %v", value, err)
		}
	}
	r.Header["X-Cost"] = []string{"1", "1"}
	if _, err := s.Check(t.Context(), r); err == nil {
		t.Error("two costs are taken for one")
	}
	for _, n := range []string{"", "x", "-1", "-0", "+1"} {
		if _, err := s.Check(t.Context(), request("GET /attribute", "n="+n)); err == nil {
			t.Errorf("an attribute of %q is a cost", n)
		}
	}
	minus, five := int64(-1), int64(5)
	r = request("GET /methods")
	if r.Cost = &minus; true {
		if _, err := s.Check(t.Context(), r); err == nil || err.Error() != `weir: cost is "-1"; accepted: 0 to 9007199254740992` {
			t.Errorf("of a negative cost the error is %v", err)
		}
	}
	r.Cost = &five
	wantRemaining(t, check(t, s.Set, r), false, 3)
}

// A cost that makes no sense fails no request where only policies that enforce nothing want to know it.
func TestShadowsAndCandidatesLeaveOutWhatHasNoCost(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: shadow, key: client_ip, limits: [fixed-window 9/1h], mode: shadow, cost: "header:X-Cost", candidate: [fixed-window 3/1h]}
  - {name: calls, key: client_ip, limits: [fixed-window 2/1h]}
  - {name: tried, key: client_ip, candidate: [fixed-window 9/1h], cost: "attribute:n"}
  - {name: enforced, match: {path: /e}, key: client_ip, limits: [fixed-window 9/1h], cost: "header:X-Cost"}
`, policy.Options{})
	r := request("GET /", "n=x")
	r.Header.Set("X-Cost", "garbage")
	wantRemaining(t, check(t, s.Set, r), true, 1)
	text, _ := explain(t, s.Set, r)
	if want := `  cost     header X-Cost is "garbage"; accepted: a whole number, 1 to 9007199254740992; it enforces nothing, and is left out`; !strings.Contains(text, want) {
		t.Errorf("it is explained as\n%s\nwant\n%s", text, want)
	}
	r.Path = "/e"
	var wrong *policy.RequestError
	if _, err := s.Check(t.Context(), r); !errors.As(err, &wrong) {
		t.Errorf("of an enforced policy the error is %v", err)
	}
	want := []policy.Stats{
		{Policy: "shadow", Checked: 1, Failed: 1}, {Policy: "calls", Checked: 1, Allowed: 1}, {Policy: "tried", Checked: 1, Failed: 1}, {Policy: "enforced"},
	}
	if got := s.Stats(); !slices.Equal(got, want) {
		t.Errorf("counts %+v\nwant   %+v", got, want)
	}
}

func TestCheckWhenItsContextHasEnded(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, key: all, limits: [fixed-window 2/1h]}]", policy.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx, request("GET /")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Explain(ctx, request("GET /")); !errors.Is(err, context.Canceled) {
		t.Errorf("error of Explain %v", err)
	}
	wantRemaining(t, s.check("GET /"), true, 1)
}

// Checks go on while everything is replaced: under the race detector.
func TestReplaceWhileChecking(t *testing.T) {
	s := newSet(t, plansYAML, policy.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				d, err := s.Check(context.Background(), request("GET /", fmt.Sprintf("key=%d", i)))
				if err != nil || len(d.Each) != 3 && len(d.Each) != 2 {
					t.Errorf("%+v, error %v", d, err)
					return
				}
				s.Stats()
				s.Status()
			}
		})
	}
	other := strings.Replace(plansYAML, "10/1h", "11/1h", 1)
	for i := range 200 {
		c, err := policy.Parse([]byte([]string{plansYAML, other}[i%2]), "")
		if err == nil {
			err = s.Replace(c)
		}
		if err == nil {
			err = s.UseClients(staticClients{"1": []*policy.Grant{plan("gold"), own("", "5/1h")}[i%2]})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wg.Wait()
}
