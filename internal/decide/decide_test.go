package decide

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// An outage is a store in memory that fails while down is set.
type outage struct {
	store.Store
	down  bool
	calls int
}

func (s *outage) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return outageBinding{b, s}, err
}

type outageBinding struct {
	store.Binding
	of *outage
}

func (b outageBinding) Now() int64 { return b.Binding.(store.Clock).Now() }

func (b outageBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if b.of.calls++; b.of.down {
		return algorithm.Verdict{}, errAway
	}
	return b.Binding.Do(ctx, key, op, now)
}

type limitOf struct {
	text   string
	policy int32
	role   Role
	on     store.OnError
}

func requestOf(t *testing.T, s store.Store, limits ...limitOf) *Request {
	t.Helper()
	r := &Request{Now: store.OwnClock, Holdings: new([]Holding)}
	for i, l := range limits {
		b, err := store.Bind(s, store.Spec{Limit: algorithm.MustParseLimit(l.text), Name: fmt.Sprint("limit", i)}, l.on)
		if err != nil {
			t.Fatal(err)
		}
		r.Claims = append(r.Claims, Claim{Bound: b, Key: "k", Cost: 1, Policy: l.policy, Role: l.role, Decision: new(algorithm.Decision)})
	}
	return r
}

// allowed lists what each claim decided: 1, 0, or - if it was skipped.
func allowed(r *Request) (s string) {
	for i := range r.Claims {
		switch k := &r.Claims[i]; {
		case k.Skipped:
			s += "-"
		case k.Decision.Allowed:
			s += "1"
		default:
			s += "0"
		}
	}
	return s
}

// Shadow limits are charged if no enforced limit denies, candidates if no other policy does.
func TestRoles(t *testing.T) {
	s := memory.New(memory.Options{})
	limits := []limitOf{
		{text: "2/1h"}, {text: "3/1h", role: Candidate}, {text: "3/1h", policy: 1, role: Shadow}, {text: "9/1h", policy: 2}, {text: "9/1h", policy: 2, role: Candidate},
	}
	for i, want := range []struct {
		allowed string
		left    int64 // of the last limit
	}{{"11111", 8}, {"11111", 7}, {"01111", 7}, {"00111", 7}} {
		r := requestOf(t, s, limits...)
		d, err := r.Decide(t.Context())
		if got := allowed(r); err != nil || got != want.allowed || d.Decision.Allowed != (got[0] == '1') || r.Claims[4].Decision.Remaining != want.left {
			t.Errorf("%d: %s, %+v, %d left, %v; want %+v", i, got, d.Decision, r.Claims[4].Decision.Remaining, err, want)
		}
	}
}

// While the store fails, each enforced limit decides as its OnError sets, and the others are skipped
// after one call at most.
func TestStoreFailure(t *testing.T) {
	for _, c := range []struct {
		limits  []limitOf
		allowed string
		calls   int
	}{
		{[]limitOf{{text: "5/1h"}}, "0", 1},
		{[]limitOf{{text: "5/1h", on: store.Allow}}, "1", 1},
		{[]limitOf{{text: "5/1h", on: store.Local}}, "1", 1},
		{[]limitOf{{text: "5/1h", on: store.Allow}, {text: "5/1h"}}, "10", 1},
		{[]limitOf{{text: "5/1h", on: store.Allow}, {text: "5/1h", role: Candidate}}, "1-", 1},
		{[]limitOf{{text: "5/1h", role: Shadow}, {text: "5/1h", policy: 1, role: Shadow}}, "--", 1},
	} {
		s := &outage{Store: memory.New(memory.Options{}), down: true}
		r := requestOf(t, s, c.limits...)
		d, err := r.Decide(t.Context())
		enforced := c.limits[0].role == Enforced
		if got := allowed(r); err != nil || got != c.allowed || s.calls != c.calls || enforced != errors.Is(d.Err, errAway) || enforced == errors.Is(d.Skipped, errAway) {
			t.Errorf("%+v: %s, %d calls, %+v, %v; want %s, %d calls", c.limits, got, s.calls, d, err, c.allowed, c.calls)
		}
		if k := r.Claims[0]; enforced && (!k.Decision.Failed || !k.Decision.Allowed && k.Decision.RetryAfter != RetryAfterFailure) {
			t.Errorf("%+v: %+v", c.limits, *k.Decision)
		}
	}
}

// A request that would hold more than a token has room for is refused, and charged nothing.
func TestHoldingsAreBounded(t *testing.T) {
	s := memory.New(memory.Options{})
	limits := make([]limitOf, MaxHoldings+1)
	for i := range limits {
		limits[i].text = "concurrent 1 lease=1m"
	}
	_, err := requestOf(t, s, limits...).Decide(t.Context())
	if _, ok := errors.AsType[*SizeError](err); !ok {
		t.Errorf("%v; want a *SizeError", err)
	}
	r := requestOf(t, s, limits[1:]...)
	d, err := r.Decide(t.Context())
	if err != nil || !d.Decision.Allowed || len(*r.Holdings) != MaxHoldings {
		t.Fatalf("%+v, %d holdings, %v", d, len(*r.Holdings), err)
	}
	settler := Settler{
		Bound: func(h *Holding) (*store.Bound, error) {
			return store.Bind(s, store.Spec{Limit: h.Limit, Name: h.Name}, store.Deny)
		},
		Now: func() int64 { return store.OwnClock },
	}
	left, gone, err := settler.Renew(t.Context(), *r.Holdings, 0, 0)
	if err != nil || gone || len(left) != MaxHoldings {
		t.Errorf("renewed %d, gone %v, %v", len(left), gone, err)
	}
	for _, want := range []bool{true, false} {
		if d, err := settler.Settle(t.Context(), left, func(*Holding) algorithm.Op { return algorithm.Op{} }); err != nil || d.Some != want {
			t.Errorf("settled %+v, %v; want %v", d, err, want)
		}
	}
}

// A Renewal runs until it ends or is stopped, and Stop returns the end of a run in progress.
func TestRenewal(t *testing.T) {
	var n Renewal
	if n.Stop() != nil {
		t.Error("a Renewal that has not started is in progress")
	}
	n = Renewal{}
	started, end := make(chan struct{}), make(chan struct{})
	runs := 0
	n.Start(0, func() {
		n.Run(func() time.Duration {
			if runs++; runs == 2 {
				close(started)
				<-end
			}
			return 0
		})
	})
	<-started
	idle := n.Stop()
	select {
	case <-idle:
		t.Error("a run in progress is over")
	default:
	}
	close(end)
	<-idle
	if n.Run(func() time.Duration { runs++; return 0 }); runs != 2 || n.Stop() != nil {
		t.Errorf("%d runs after Stop, want 2", runs)
	}
}
