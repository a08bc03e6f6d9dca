package admission_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

func TestMain(m *testing.M) {
	m.Run()
	testengine.Close()
}

func limiter(t testing.TB, text string, o ...weir.Option) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(text), o...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func policies(t testing.TB, text string, o policy.Options) *policy.Set {
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

func gate[L admission.Limits](t testing.TB, limits L, o admission.Options) *admission.Gate {
	t.Helper()
	g, err := admission.New(limits, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// peer is who sends a request.
const peer = "192.0.2.1"

// request is one from the peer.
func request(path string, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

func costs(n int64) func(*http.Request) int64 { return func(*http.Request) int64 { return n } }

func wantOutcome(t *testing.T, a admission.Admission, want admission.Outcome) {
	t.Helper()
	if a.Outcome != want {
		t.Errorf("the outcome is %v, want %v; %+v, error %v", a.Outcome, want, a.Decision, a.Err)
	}
}

func wantRemaining(t *testing.T, l *weir.Limiter, want int64) {
	t.Helper()
	d, err := l.Peek(context.Background(), peer)
	if err != nil || d.Remaining != want {
		t.Errorf("%d of %v remain, want %d; error %v", d.Remaining, l.Limit(), want, err)
	}
}

// each is what is told: a name and what remains, and ! of limits that denied.
func each(a *admission.Admission) (names []string, remaining []int64) {
	for s := range a.Each() {
		if !s.Decision.Allowed {
			s.Name += "!"
		}
		names, remaining = append(names, s.Name), append(remaining, s.Decision.Remaining)
	}
	return names, remaining
}

func wantEach(t *testing.T, a admission.Admission, want ...string) {
	t.Helper()
	if got, _ := each(&a); !slices.Equal(got, want) {
		t.Errorf("clients are told of %q, want %q", got, want)
	}
}

func TestOutcomesOfALimiter(t *testing.T) {
	g := gate(t, limiter(t, "fixed-window 3/24h"), admission.Options{Cost: func(r *http.Request) int64 { return r.ContentLength }})
	for _, step := range []struct {
		cost int64
		want admission.Outcome
		told []string
	}{
		{2, admission.Admitted, []string{"fixed-window 3/24h"}},
		{0, admission.Admitted, []string{"fixed-window 3/24h"}},
		{2, admission.Denied, []string{"fixed-window 3/24h!"}},
		{4, admission.Excessive, []string{"fixed-window 3/24h!"}},
		{-1, admission.Invalid, nil},
		{1, admission.Admitted, []string{"fixed-window 3/24h"}},
	} {
		r := request("/")
		r.ContentLength = step.cost
		a := g.Admit(r)
		wantOutcome(t, a, step.want)
		wantEach(t, a, step.told...)
		if (a.Decision.RetryAfter == weir.Never) != (step.want == admission.Excessive) || a.Held() {
			t.Errorf("cost %d: %+v, held %v", step.cost, a.Decision, a.Held())
		}
		var cost *weir.CostError
		if errors.As(a.Err, &cost) != (step.want == admission.Invalid) {
			t.Errorf("cost %d: error %v", step.cost, a.Err)
		}
	}
}

func TestOutcomesThatNoLimitDecides(t *testing.T) {
	l := limiter(t, "1/24h")
	g := gate(t, l, admission.Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/health" }})
	for range 3 {
		a := g.Admit(request("/health"))
		wantOutcome(t, a, admission.Skipped)
		wantEach(t, a)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, g := range []*admission.Gate{g, gate(t, policies(t, "policies: [{name: a, key: all, limits: [1/1h]}]", policy.Options{}), admission.Options{})} {
		a := g.Admit(request("/").WithContext(ended))
		wantOutcome(t, a, admission.Gone)
		wantEach(t, a)
		if !errors.Is(a.Err, context.Canceled) {
			t.Errorf("the error is %v", a.Err)
		}
	}
	wantRemaining(t, l, 1)
}

func TestOverride(t *testing.T) {
	usual, gold := limiter(t, "1/24h"), limiter(t, "2/24h burst=5")
	g := gate(t, usual, admission.Options{Name: "api", Override: func(r *http.Request) *weir.Limiter {
		if r.Header.Get("Plan") == "gold" {
			return gold
		}
		return nil
	}})
	for range 3 { // both names, again and again
		a := g.Admit(request("/", "Plan", "gold"))
		wantOutcome(t, a, admission.Admitted)
		wantEach(t, a, "2/24h burst=5")
		if a.Decision.Limit != 5 {
			t.Errorf("the decision is %+v", a.Decision)
		}
	}
	wantEach(t, g.Admit(request("/")), "api")
	a := g.Admit(request("/"))
	wantEach(t, a, "api!")
	if got := slices.Collect(a.Violated()); !slices.Equal(got, []string{"api"}) {
		t.Errorf("violated are %q", got)
	}
}

// A limit that changes while requests come is told as it is, and decides as it is.
func TestLimitsThatChange(t *testing.T) {
	l := limiter(t, "fixed-window 10/24h", weir.WithName("n"))
	g := gate(t, l, admission.Options{})
	for _, text := range []string{"fixed-window 10/24h", "fixed-window 20/24h", "concurrent 5 lease=30s", "fixed-window 10/24h"} {
		if err := l.SetLimit(weir.MustParseLimit(text)); err != nil {
			t.Fatal(err)
		}
		a := g.Admit(request("/"))
		wantOutcome(t, a, admission.Admitted)
		if wantEach(t, a, text); a.Held() != (text[0] == 'c') {
			t.Errorf("%s holds something: %v", text, a.Held())
		}
		a.Finish(admission.Response{})
	}
}

// Many limits are told by their own names, more than are kept.
func TestNamesOfManyLimits(t *testing.T) {
	var l *weir.Limiter
	g := gate(t, limiter(t, "1/24h"), admission.Options{Override: func(*http.Request) *weir.Limiter { return l }})
	for range 2 {
		for n := int64(1); n <= 600; n++ {
			limit := weir.Limit{Count: n, Period: 1e9}
			l, _ = weir.New(limit)
			a := g.Admit(request("/"))
			wantEach(t, a, l.Limit().String())
		}
	}
}

// Pitfall H8: configuration that makes no sense is an error of New, and names the field.
func TestH8OptionsThatMakeNoSense(t *testing.T) {
	plain, named := limiter(t, "1/1s"), limiter(t, "1/1s", weir.WithName("n"))
	busy := limiter(t, "concurrent 1 lease=1s", weir.WithName("busy"))
	broken := identity.Key{identity.Everyone(), identity.Func("", nil)}
	for _, c := range []struct {
		limiter *weir.Limiter
		o       admission.Options
		field   string
	}{
		{nil, admission.Options{}, "limits"},
		{new(weir.Limiter), admission.Options{}, "limits"},
		{new(weir.Limiter), admission.Options{OnStoreError: store.Local}, "limits"},
		{plain, admission.Options{Attributes: map[string]identity.Source{"a": identity.Everyone()}}, "Attributes"},
		{plain, admission.Options{Name: "caf\u00e9"}, "Name"},
		{plain, admission.Options{Name: "a\nb"}, "Name"},
		{plain, admission.Options{Name: string(make([]byte, 129))}, "Name"},
		{plain, admission.Options{Key: identity.Key{}}, "Key"},
		{plain, admission.Options{Key: broken}, "Key"},
		{plain, admission.Options{Key: identity.Key{{}}}, "Key"},
		{plain, admission.Options{Charge: admission.Failures}, "Charge"},
		{busy, admission.Options{Charge: admission.Failures}, "Charge"},
		{limiter(t, "exponential 5/1h", weir.WithName("e")), admission.Options{Charge: admission.Failures}, "Charge"},
		{named, admission.Options{Hold: 1e9}, "Hold"},
		{named, admission.Options{Charge: admission.Failures, Hold: -1}, "Hold"},
		{named, admission.Options{Charge: admission.Failures, Hold: 1}, "Hold"},
		{named, admission.Options{Charge: admission.Failures, Hold: 25 * 3600e9}, "Hold"},
		{named, admission.Options{OnStoreError: 9}, "OnStoreError"},
	} {
		g, err := admission.New(c.limiter, c.o)
		wantOptionError(t, g, err, c.field)
	}
	set := policies(t, "policies: []", policy.Options{})
	for _, c := range []struct {
		set   *policy.Set
		o     admission.Options
		field string
	}{
		{nil, admission.Options{}, "limits"},
		{new(policy.Set), admission.Options{}, "limits"},
		{set, admission.Options{Name: "a"}, "Name"},
		{set, admission.Options{Key: identity.Key{identity.Everyone()}}, "Key"},
		{set, admission.Options{Override: func(*http.Request) *weir.Limiter { return nil }}, "Override"},
		{set, admission.Options{OnStoreError: store.Local}, "OnStoreError"},
		{set, admission.Options{Hold: 1e9}, "Hold"},
		{set, admission.Options{Attributes: map[string]identity.Source{"": identity.Everyone()}}, "Attributes"},
		{set, admission.Options{Attributes: map[string]identity.Source{"a": {}}}, `Attributes["a"]`},
	} {
		g, err := admission.New(c.set, c.o)
		wantOptionError(t, g, err, c.field)
	}
}

// Pitfall H8: an Override that returns what weir.New did not make refuses its requests, and says so in the log.
func TestH8OverrideWithoutALimit(t *testing.T) {
	for _, on := range []store.OnError{store.Deny, store.Allow, store.Local} {
		var log logged
		g := gate(t, limiter(t, "1/1s"), admission.Options{
			Override: func(*http.Request) *weir.Limiter { return &weir.Limiter{} }, OnStoreError: on, Log: logTo(&log),
		})
		a := g.Admit(request("/"))
		wantOutcome(t, a, admission.Undecided)
		wantEach(t, a)
		if !strings.Contains(log.String(), "Override") {
			t.Errorf("%v: logged %q", on, log.String())
		}
	}
}

func wantOptionError(t *testing.T, g *admission.Gate, err error, field string) {
	t.Helper()
	var wrong *admission.OptionError
	if g != nil || !errors.As(err, &wrong) || wrong.Field != field || wrong.Value == "" || wrong.Accept == "" {
		t.Errorf("the error is %v, want one of %s", err, field)
	}
}

// What is decided about most requests is not paid for by what few need.
func TestAdmitDoesNotAllocate(t *testing.T) {
	g := gate(t, limiter(t, "1000000/1s"), admission.Options{})
	r := request("/")
	told := 0
	n := testing.AllocsPerRun(1000, func() {
		a := g.Admit(r)
		for s := range a.Each() {
			told += len(s.Name)
		}
		a.Finish(admission.Response{})
	})
	if n != 0 || told == 0 {
		t.Errorf("%v allocations for each request, want none", n)
	}
}
