package policy_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A failingStore fails at once.
type failingStore struct{}

func (s failingStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (failingStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("no answer")
}

func TestFailuresOfShadowsAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := newSet(t, "policies: [{name: a, key: all, limits: [10/1s], mode: shadow}]",
			policy.Options{Store: failingStore{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
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
`, policy.Options{Store: failingStore{}, Clients: staticClients{"eve": plan("blocked")}})
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
	s := newSet(t, "policies: [{name: p, key: all, limits: [fixed-window 3/24h], on_store_error: local}]", policy.Options{Store: failingStore{}})
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
