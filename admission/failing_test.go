package admission_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A failingStore fails at once. Each has local limits of its own.
type failingStore struct{ _ int }

func (s *failingStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (*failingStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("no answer")
}

// A waitingStore waits until the context ends.
type waitingStore struct{}

func (s waitingStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (waitingStore) Do(ctx context.Context, _ string, _ algorithm.Op, _ int64) (algorithm.Verdict, error) {
	<-ctx.Done()
	return algorithm.Verdict{}, ctx.Err()
}

// Pitfall H6: what a store's failure does is the policy's choice, on an engine that goes away and comes back.
func TestH6RedisGoesAway(t *testing.T) {
	server := testengine.Redis(t)
	s, err := redis.Open(t.Context(), server.URL(), redis.Options{Prefix: "h6", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	build := func(o admission.Options) *admission.Gate {
		o.Log = silent
		return gate(t, limiter(t, "fixed-window 3/24h", weir.WithStore(s), weir.WithName("n")), o)
	}
	deny, allow, local := build(admission.Options{}), build(admission.Options{OnStoreError: store.Allow}), build(admission.Options{OnStoreError: store.Local})
	charged := gate(t, limiter(t, "fixed-window 3/24h", weir.WithStore(s), weir.WithName("charged")),
		admission.Options{OnStoreError: store.Local, Charge: admission.Failures, Log: silent})
	wantOutcome(t, deny.Admit(request("/")), admission.Admitted)
	underWay := charged.Admit(request("/"))
	wantOutcome(t, underWay, admission.Admitted)

	server.Stop(t)
	underWay.Finish(status(401)) // can't be settled, and does no harm
	for range 5 {
		a := deny.Admit(request("/"))
		wantOutcome(t, a, admission.Undecided)
		wantEach(t, a)
		if a.Err == nil || a.Decision != (weir.Decision{RetryAfter: time.Second}) || slices.Collect(a.Violated()) != nil {
			t.Errorf("%+v, error %v", a.Decision, a.Err)
		}
		a = allow.Admit(request("/"))
		wantOutcome(t, a, admission.Admitted)
		if wantEach(t, a); a.Err == nil || a.Held() {
			t.Errorf("error %v, held %v", a.Err, a.Held())
		}
	}
	for i, want := range []admission.Outcome{admission.Admitted, admission.Admitted, admission.Admitted, admission.Denied} {
		a := local.Admit(request("/"))
		wantOutcome(t, a, want)
		name := "fixed-window 3/24h"
		if want == admission.Denied {
			name += "!"
		}
		if wantEach(t, a, name); a.Err == nil || a.Decision.Remaining != max(0, int64(2-i)) {
			t.Errorf("%+v, error %v", a.Decision, a.Err)
		}
	}
	for i, want := range []admission.Outcome{admission.Admitted, admission.Admitted, admission.Admitted, admission.Admitted, admission.Denied} {
		a := charged.Admit(request("/"))
		wantOutcome(t, a, want)
		a.Finish(status([]int{401, 200, 401, 401, 401}[i])) // in this process
	}

	server.Start(t)
	a := deny.Admit(request("/"))
	for a.Outcome != admission.Admitted { // until a probe has found the server
		time.Sleep(10 * time.Millisecond)
		a = deny.Admit(request("/"))
	}
}

// Leases on an engine are renewed by its own clock, and given back.
func TestLeasesOnRedis(t *testing.T) {
	s, err := redis.Open(t.Context(), redisServer(t).URL(), redis.Options{Prefix: "leases", Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l := limiter(t, "concurrent 2 lease=3s", weir.WithStore(s))
	set := policies(t, "policies: [{name: busy, key: [client_ip], limits: [concurrent 2 lease=3s]}]", policy.Options{Store: s})
	peek := admission.Options{Cost: costs(0)}
	for _, g := range []struct{ gate, look *admission.Gate }{
		{gate(t, l, admission.Options{}), gate(t, l, peek)}, {gate(t, set, admission.Options{}), gate(t, set, peek)},
	} {
		a := g.gate.Admit(request("/"))
		wantOutcome(t, a, admission.Admitted)
		before := g.look.Admit(request("/")).Decision
		for { // until it ends later than a moment ago
			now := g.look.Admit(request("/")).Decision
			if now.ResetAfter > before.ResetAfter && now.Remaining == 1 {
				break
			}
			if now.Remaining == 2 { // a busy machine has lost the lease
				a.Finish(status(200))
				a = g.gate.Admit(request("/"))
				now = g.look.Admit(request("/")).Decision
			}
			before = now
		}
		a.Finish(status(200))
		// the renewal may give the place back just now
		for g.look.Admit(request("/")).Decision.Remaining != 2 {
			time.Sleep(time.Millisecond)
		}
	}
}

var redisServer = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Redis(t) })

// A request that its client gave up is not the store's failure.
func TestGoneIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		for _, o := range []store.OnError{store.Deny, store.Allow, store.Local} {
			g := gate(t, limiter(t, "1/1s", weir.WithStore(waitingStore{})), admission.Options{OnStoreError: o, Log: logTo(&log)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			a := g.Admit(request("/").WithContext(ctx))
			wantOutcome(t, a, admission.Gone)
			if !errors.Is(a.Err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", a.Err)
			}
			cancel()
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
	})
}

// While a store is away every request fails: that is logged once a second, without what the requests said.
func TestFailuresAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		for _, g := range []*admission.Gate{
			gate(t, limiter(t, "1/1s", weir.WithStore(&failingStore{})), admission.Options{Log: logTo(&log)}),
			gate(t, policies(t, "policies: [{name: a, key: all, limits: [1/1s]}]", policy.Options{Store: &failingStore{}}), admission.Options{Log: logTo(&log)}),
		} {
			log.Reset()
			for want := 1; want <= 3; want++ {
				for range 10 {
					wantOutcome(t, g.Admit(request("/secret")), admission.Undecided)
				}
				if n := strings.Count(log.String(), "no answer"); n != want {
					t.Errorf("logged %d times in %d seconds", n, want)
				}
				time.Sleep(time.Second)
			}
			if !strings.Contains(log.String(), "not_logged=9") || strings.Contains(log.String(), peer) || strings.Contains(log.String(), "secret") {
				t.Errorf("logged: %s", &log)
			}
		}
	})
}

// An Override that returns a limiter without a name, where costs are held, is refused, whatever a failing store would do.
func TestHoldsOfOverridesWithoutANameAreUndecided(t *testing.T) {
	other := limiter(t, "1/1s")
	for _, o := range []store.OnError{store.Deny, store.Allow, store.Local} {
		g := gate(t, limiter(t, "1/1s", weir.WithName("n")), admission.Options{
			Charge: admission.Failures, OnStoreError: o, Override: func(*http.Request) *weir.Limiter { return other }, Log: silent,
		})
		a := g.Admit(request("/"))
		if wantOutcome(t, a, admission.Undecided); !errors.Is(a.Err, weir.ErrUnnamed) {
			t.Errorf("the error is %v", a.Err)
		}
	}
}

// Many limiters of one store fall back, and each counts on.
func TestManyLocalLimiters(t *testing.T) {
	away := &failingStore{}
	l := limiter(t, "1/24h", weir.WithStore(away))
	g := gate(t, l, admission.Options{OnStoreError: store.Local, Override: func(*http.Request) *weir.Limiter { return l }, Log: silent})
	for _, want := range []admission.Outcome{admission.Admitted, admission.Denied} {
		for n := range int64(300) {
			var err error
			if l, err = weir.New(weir.Limit{Count: 1, Period: time.Hour + time.Duration(n)}, weir.WithStore(away)); err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, g.Admit(request("/")), want)
		}
	}
}

// Gates on one store have the same local limits, and a limiter's own decision is used where the
// Options have none.
func TestGatesShareLocalLimits(t *testing.T) {
	away := &failingStore{}
	l := limiter(t, "2/24h", weir.WithStore(away), weir.WithOnStoreError(store.Allow))
	own, local := gate(t, l, admission.Options{Log: silent}), admission.Options{OnStoreError: store.Local, Log: silent}
	other := limiter(t, "2/24h", weir.WithStore(away))
	for i, g := range []*admission.Gate{gate(t, l, local), gate(t, other, local), gate(t, l, local)} {
		want := admission.Admitted
		if i == 2 {
			want = admission.Denied
		}
		a := g.Admit(request("/"))
		if wantOutcome(t, a, want); !a.Decision.Failed || !a.Decision.Local || a.Err == nil || !strings.Contains(a.Err.Error(), "no answer") {
			t.Errorf("%+v, %v", a.Decision, a.Err)
		}
	}
	a := own.Admit(request("/"))
	if wantOutcome(t, a, admission.Admitted); !a.Decision.Failed || a.Decision.Local || a.Err == nil {
		t.Errorf("%+v, %v", a.Decision, a.Err)
	}
	wantEach(t, a)
}
