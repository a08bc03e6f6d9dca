package policy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// A hangingStore answers nothing, and says so after a second. It counts how often it is asked.
type hangingStore struct{ asked int }

func (s *hangingStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (s *hangingStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	s.asked++
	time.Sleep(time.Second)
	return algorithm.Verdict{}, errors.New("no answer")
}

// What is not enforced waits for a store that hangs once, however much of it there is.
func TestShadowsWaitOnceForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &hangingStore{}
		s := newSet(t, `
policies:
  - {name: a, key: all, limits: [10/1s], mode: shadow, candidate: [5/1s]}
  - {name: b, key: all, limits: [10/1s], mode: shadow}
  - {name: c, key: all, candidate: [10/1s]}
`, policy.Options{Store: hanging})
		if d := check(t, s, request("GET /")); !d.Allowed || len(d.Each) != 0 || hanging.asked != 1 {
			t.Errorf("the store was asked %d times, want 1; the decision is %+v", hanging.asked, d)
		}
		for _, c := range s.Stats() {
			if c.Checked != 1 || c.Failed != 1 {
				t.Errorf("counts %+v", c)
			}
		}
	})
}

// A failingStore fails at once. Each has local limits of its own.
type failingStore struct{ _ int }

func (s *failingStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (*failingStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("no answer")
}

func TestFailuresOfShadowsAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := newSet(t, "policies: [{name: a, key: all, limits: [10/1s], mode: shadow}]",
			policy.Options{Store: &failingStore{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for want := 1; want <= 3; want++ {
			for range 10 {
				check(t, s, request("GET /"))
			}
			if n := strings.Count(log.String(), "not decided"); n != want {
				t.Errorf("logged %d times in %d seconds", n, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// While the store is away, a plan that denies keeps the limits beside it from being charged in memory.
func TestNothingIsChargedLocallyBesideADenial(t *testing.T) {
	s := newSet(t, `
policies:
  - {name: here, key: all, limits: [2/1h], on_store_error: local}
  - {name: gate, key: [attribute:who], match: {path: /gate}, limits: [9/1h], plans: {blocked: deny}, on_store_error: allow}
  - {name: shut, key: all, match: {path: /shut}, limits: [9/1h]}
`, policy.Options{Store: &failingStore{}, Clients: staticClients{"eve": plan("blocked")}})
	for _, line := range []string{"GET /gate", "GET /shut"} {
		for range 3 {
			if d := check(t, s, request(line, "who=eve")); d.Allowed {
				t.Errorf("%s: %+v, want a denial", line, d)
			}
		}
	}
	for i, want := range []bool{true, true, false} {
		if d := check(t, s, request("GET /")); d.Allowed != want {
			t.Errorf("request %d: allowed %v, want %v", i+1, d.Allowed, want)
		}
	}
}

// To explain what would be decided here while the store is away takes nothing here.
func TestExplainChargesNothingLocally(t *testing.T) {
	s := newSet(t, "policies: [{name: p, key: all, limits: [fixed-window 3/24h], on_store_error: local}]", policy.Options{Store: &failingStore{}})
	for range 5 {
		e, err := s.Explain(t.Context(), request("GET /"))
		if l := e.Policies[0].Limits[0]; err != nil || !l.Failed || !l.Local || l.Remaining != 3 {
			t.Fatalf("explained: %+v, error %v; want 3 that remain here", l, err)
		}
	}
	if d := check(t, s, request("GET /")); !d.Allowed || d.Remaining != 2 {
		t.Errorf("then: %+v", d)
	}
}

// A share of the limits is enforced here while the store is away, for settlements too.
func TestLocalShareOfAPolicy(t *testing.T) {
	s := newSet(t, "policies: [{name: p, key: all, limits: [fixed-window 8/24h, concurrent 4 lease=1h], on_store_error: local 25%}]",
		policy.Options{Store: &failingStore{}})
	d := check(t, s, request("GET /"))
	if !d.Allowed || !d.Failed || !d.Local || d.Each[0].Decision.Limit != 2 || d.Each[0].Remaining != 1 || d.Each[0].Limit.String() != "fixed-window 8/24h" {
		t.Errorf("%+v", d)
	}
	if d := check(t, s, request("GET /")); d.Allowed || d.Each[1].Allowed || d.Each[0].Remaining != 1 {
		t.Errorf("a second one in flight: %+v", d)
	}
	if err := s.Release(t.Context(), d.Token); err != nil {
		t.Error(err)
	}
	for _, want := range []bool{true, false} {
		if d = check(t, s, request("GET /")); d.Allowed != want {
			t.Errorf("%+v", d)
		}
		if want {
			if err := s.Release(t.Context(), d.Token); err != nil {
				t.Error(err)
			}
		}
	}
	e, err := s.Explain(t.Context(), request("GET /"))
	if err != nil || e.Policies[0].OnStoreError != "local 25%" {
		t.Errorf("%+v, %v", e, err)
	}
}

// A call's own decision goes before that of the policies.
func TestOnErrorOfACall(t *testing.T) {
	s := newSet(t, "policies: [{name: p, key: all, limits: [1/1h], on_store_error: local}]", policy.Options{Store: &failingStore{}})
	for _, c := range []struct {
		on             store.OnError
		allowed, local bool
	}{{store.Deny, false, false}, {store.Allow, true, false}, {store.Local, true, true}, {store.Local, false, true}, {store.LocalShare(0.5), false, false}} {
		d, err := s.Check(store.WithOnError(t.Context(), c.on), request("GET /"))
		if err != nil || d.Allowed != c.allowed || d.Local != c.local || !d.Failed || !d.Each[0].Failed {
			t.Errorf("%v: %+v, %v", c.on, d, err)
		}
	}
}

// A limit that has no share is refused with the configuration, or with the client.
func TestSharesThatThereAreNot(t *testing.T) {
	const text = "policies: [{name: p, key: [client_ip], limits: [%s], plans: {gold: 100/1m}, on_store_error: local 25%%}]"
	c, err := policy.Parse(fmt.Appendf(nil, text, "3/1m"), "w.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const want = `w.yaml:1:49: policies[0].limits[0] is "3/1m", without a share for on_store_error: local 25%: limit has burst 3; accepted: 4 or more, for a share of 25%`
	if _, err := policy.New(c, policy.Options{}); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	s := newSet(t, fmt.Sprintf(text, "4/1m"), policy.Options{})
	own := &policy.Grant{Limits: map[string][]weir.Limit{"p": {weir.MustParseLimit("3/1m")}}}
	if err := s.UseClients(staticClients{"client_ip=192.0.2.1": own}); err == nil || !strings.Contains(err.Error(), "without a share for on_store_error: local 25%") {
		t.Errorf("%v", err)
	}
}

// A value that is not weir's is no failure of the store: the policy's decision is not used for it.
func TestForeignValuesAreNoFailures(t *testing.T) {
	s := newSet(t, "policies: [{name: p, key: all, limits: [1/1h], on_store_error: allow}]", policy.Options{Store: foreignStore{}})
	if d, err := s.Check(t.Context(), request("GET /")); err == nil {
		t.Errorf("%+v", d)
	}
}

// A foreignStore has values of another program.
type foreignStore struct{}

func (s foreignStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (foreignStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, &store.KeyError{Key: "k", Err: errors.New("WRONGTYPE")}
}
