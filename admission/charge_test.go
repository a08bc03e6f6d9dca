package admission_test

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"pgregory.net/rapid"
)

func status(code int) admission.Response { return admission.Response{Status: code} }

func TestChargesByTheResponse(t *testing.T) {
	for _, c := range []struct {
		charge func(*http.Request, admission.Response) int64
		want   []int64 // left of 1000, after 200 with 7 bytes, 302, 404, 500
	}{
		{admission.Failures, []int64{1000, 1000, 999, 998}},
		{admission.Successes, []int64{999, 998, 998, 998}},
		{admission.Size, []int64{993, 993, 993, 993}},
		{func(*http.Request, admission.Response) int64 { return -5 }, []int64{1000, 1000, 1000, 1000}},
		{func(_ *http.Request, r admission.Response) int64 { return int64(len(r.Header.Get("Work"))) }, []int64{996, 996, 996, 996}},
	} {
		l := limiter(t, "fixed-window 1000/24h", weir.WithName("n"))
		g := gate(t, l, admission.Options{Charge: c.charge, Cost: costs(10), Log: silent})
		for i, r := range []admission.Response{{Status: 200, Bytes: 7, Header: http.Header{"Work": {"hard"}}}, status(302), status(404), status(500)} {
			a := g.Admit(request("/"))
			wantOutcome(t, a, admission.Admitted)
			if !a.Held() {
				t.Error("nothing is held")
			}
			before := int64(1000)
			if i > 0 {
				before = c.want[i-1]
			}
			wantRemaining(t, l, before-10)
			copied := a
			a.Finish(r)
			copied.Finish(status(404)) // the first one counts
			a.Finish(status(200))
			wantRemaining(t, l, c.want[i])
		}
	}
}

// The handler's context has often ended when it has answered, because the client has gone.
func TestFinishAfterTheContextHasEnded(t *testing.T) {
	l := limiter(t, "fixed-window 5/24h", weir.WithName("n"))
	set := policies(t, "policies: [{name: p, key: all, limits: [fixed-window 5/24h]}]", policy.Options{})
	for _, g := range []*admission.Gate{gate(t, l, admission.Options{Charge: admission.Failures}), gate(t, set, admission.Options{Charge: admission.Failures})} {
		ctx, cancel := context.WithCancel(context.Background())
		first, second := g.Admit(request("/").WithContext(ctx)), g.Admit(request("/").WithContext(ctx))
		cancel()
		first.Finish(status(401))
		second.Finish(status(200))
		if a := g.Admit(request("/")); a.Decision.Remaining != 3 {
			t.Errorf("%d remain, want 3", a.Decision.Remaining)
		}
	}
}

// Of a thousand logins at once no more than 5 are under way, and when those have failed there are no more.
func TestLoginsInParallel(t *testing.T) {
	for _, g := range []*admission.Gate{
		gate(t, limiter(t, "fixed-window 5/24h", weir.WithName("logins")), admission.Options{Charge: admission.Failures}),
		gate(t, policies(t, "policies: [{name: logins, key: [client_ip], limits: [fixed-window 5/24h]}]", policy.Options{}), admission.Options{Charge: admission.Failures}),
	} {
		var admitted, most, unanswered atomic.Int64
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				a := g.Admit(request("/"))
				if !a.Outcome.Pass() {
					return
				}
				most.Store(max(most.Load(), unanswered.Add(1)))
				for range i % 7 {
					a.Held()
				}
				unanswered.Add(-1)
				admitted.Add(1)
				a.Finish(status(401))
			})
		}
		wg.Wait()
		if admitted.Load() != 5 || most.Load() > 5 {
			t.Errorf("%d logins were tried, %d at once, want 5", admitted.Load(), most.Load())
		}
		wantOutcome(t, g.Admit(request("/")), admission.Denied)
	}
}

// A request longer than Hold keeps its estimate, and is charged after its response.
func TestHoldsLastAsLongAsTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "fixed-window 100/48h", weir.WithName("n"))
		set := policies(t, "policies: [{name: p, key: [client_ip], limits: [fixed-window 100/48h]}]", policy.Options{})
		var log logged
		o := admission.Options{Charge: admission.Size, Cost: costs(10), Hold: time.Minute, Log: logTo(&log)}
		for _, g := range []*admission.Gate{gate(t, l, o), gate(t, set, o)} {
			first, second, third := g.Admit(request("/")), g.Admit(request("/")), g.Admit(request("/"))
			// and not at the instant of a renewal, to which Finish leaves the rest
			time.Sleep(time.Hour + time.Millisecond)
			first.Finish(admission.Response{Status: 200, Bytes: 70})
			first.Finish(admission.Response{Status: 200, Bytes: 70})
			second.Finish(admission.Response{Status: 200})
			// 70 are charged, 20 are held
			if a := g.Admit(request("/")); a.Decision.Remaining != 10 {
				t.Errorf("%d remain, want 10; %v", a.Decision.Remaining, a.Outcome)
			} else {
				a.Finish(admission.Response{Status: 200})
			}
			third.Finish(admission.Response{Status: 200, Bytes: 70})
			wantOutcome(t, g.Admit(request("/")), admission.Denied)
			time.Sleep(48 * time.Hour) // 40 became debt; a leaked timer would keep the bubble alive
			if a := g.Admit(request("/")); a.Decision.Remaining != 50 {
				t.Errorf("%d remain a window later, want 50", a.Decision.Remaining)
			} else {
				a.Finish(admission.Response{Status: 200})
			}
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
	})
}

// What more is charged than there is room for is owed.
func TestChargesAboveTheEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "fixed-window 100/1h", weir.WithName("n"))
		g := gate(t, l, admission.Options{Charge: admission.Size, Cost: costs(0)})
		a := g.Admit(request("/"))
		a.Finish(admission.Response{Bytes: 150})
		wantOutcome(t, g.Admit(request("/")), admission.Denied)
		time.Sleep(time.Hour)
		wantRemaining(t, l, 50)
	})
}

// A charge beyond all bounds is a very large one.
func TestChargesBeyondAllBounds(t *testing.T) {
	var log logged
	o := admission.Options{Charge: func(*http.Request, admission.Response) int64 { return math.MaxInt64 }, Log: logTo(&log)}
	for _, g := range []*admission.Gate{
		gate(t, limiter(t, "100/1h", weir.WithName("n")), o),
		gate(t, policies(t, "policies: [{name: p, key: all, limits: [100/1h]}]", policy.Options{}), o),
	} {
		a := g.Admit(request("/"))
		a.Finish(status(200))
		if wantOutcome(t, g.Admit(request("/")), admission.Denied); log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
	}
}

// Any sequence of requests and answers leaves what a count of them says.
func TestRemainingIsWhatAModelSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const capacity = 50
		l, err := weir.New(weir.MustParseLimit("fixed-window 50/48h"), weir.WithName("n"), weir.WithClock(func() time.Time { return time.Unix(1e9, 0) }))
		if err != nil {
			rt.Fatal(err)
		}
		var cost int64
		g, err := admission.New(l, admission.Options{Key: identity.Key{identity.Header("K")}, Cost: func(*http.Request) int64 { return cost }, Charge: admission.Size})
		if err != nil {
			rt.Fatal(err)
		}
		type open struct {
			admission.Admission

			key  string
			held int64
		}
		used, underWay := map[string]int64{}, []open{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if len(underWay) > 0 && rapid.Bool().Draw(rt, "answer") {
				i := rapid.IntRange(0, len(underWay)-1).Draw(rt, "which")
				o, bytes := underWay[i], rapid.Int64Range(0, 12).Draw(rt, "bytes")
				o.Finish(admission.Response{Status: 200, Bytes: bytes})
				used[o.key] += bytes - o.held
				underWay = append(underWay[:i], underWay[i+1:]...)
			} else {
				key := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "key")
				cost = rapid.Int64Range(0, 20).Draw(rt, "cost")
				a := g.Admit(request("/", "K", key))
				want := used[key]+cost <= capacity // also of nothing: a key that owes lets nothing begin
				if a.Outcome.Pass() != want {
					rt.Fatalf("at %d of 50 a request of %d has %v", used[key], cost, a.Outcome)
				}
				if want {
					used[key] += cost
					underWay = append(underWay, open{a, key, cost})
				}
			}
			for key, n := range used {
				if d, err := l.Peek(context.Background(), key); err != nil || d.Remaining != max(0, capacity-n) {
					rt.Fatalf("%d remain of %q, want %d; error %v", d.Remaining, key, capacity-n, err)
				}
			}
		}
	})
}

// What policies say a request costs is theirs, and stays what it is; what the response is charged is for those that say none.
func TestChargesBesidePoliciesCosts(t *testing.T) {
	const document = `
policies:
  - {name: bytes, key: all, limits: [fixed-window 1000/24h]}
  - {name: calls, key: all, limits: [fixed-window 10/24h], cost: 1}
  - {name: methods, key: all, limits: [fixed-window 20/24h], cost: {GET: 3}}
  - {name: said, key: all, limits: [fixed-window 100/24h], cost: "header:X-Cost"}
`
	for name, c := range map[string]struct {
		opts           admission.Options
		held, answered []int64
	}{
		"each its own": {admission.Options{Charge: admission.Size}, []int64{999, 9, 17, 95}, []int64{700, 9, 17, 0}},
		"Cost is for all": {
			admission.Options{Charge: admission.Size, Cost: func(*http.Request) int64 { return 2 }}, []int64{998, 8, 18, 98}, []int64{700, 0, 0, 0},
		},
	} {
		set := policies(t, document, policy.Options{})
		a := gate(t, set, c.opts).Admit(request("/", "X-Cost", "5"))
		if _, left := each(&a); !slices.Equal(left, c.held) {
			t.Errorf("%s: while it is held %d remain, want %d", name, left, c.held)
		}
		a.Finish(admission.Response{Bytes: 300})
		after := gate(t, set, admission.Options{Cost: costs(0)}).Admit(request("/"))
		if _, left := each(&after); !slices.Equal(left, c.answered) {
			t.Errorf("%s: when it is answered %d remain, want %d", name, left, c.answered)
		}
	}
}

// What the response is charged is of each limit of a policy, also in shadow mode.
func TestChargesOfPolicies(t *testing.T) {
	set := policies(t, `
policies:
  - {name: bytes, key: [client_ip], limits: [fixed-window 1000/24h, fixed-window 500/1h]}
  - {name: quiet, key: [client_ip], limits: [fixed-window 1000/24h], mode: shadow}
`, policy.Options{})
	g := gate(t, set, admission.Options{Charge: admission.Size})
	a := g.Admit(request("/"))
	wantEach(t, a, "bytes/1", "bytes/2")
	a.Finish(admission.Response{Bytes: 600})
	a = g.Admit(request("/"))
	wantOutcome(t, a, admission.Denied)
	wantEach(t, a, "bytes/1", "bytes/2!")
	if _, left := each(&a); left[0] != 400 || left[1] != 0 {
		t.Errorf("%d remain", left)
	}
}
