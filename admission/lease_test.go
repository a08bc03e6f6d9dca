package admission_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const twoAtOnce = "policies: [{name: busy, key: [client_ip], limits: [concurrent 2 lease=30s]}]"

func leasing(t *testing.T, f func(t *testing.T, g *admission.Gate)) {
	t.Run("limiter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, gate(t, limiter(t, "concurrent 2 lease=30s"), admission.Options{Log: silent}))
		})
	})
	t.Run("policies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, gate(t, policies(t, twoAtOnce, policy.Options{}), admission.Options{Log: silent}))
		})
	})
}

// A lease lasts as long as the request, however long that is, and no longer.
func TestLeasesLastAsLongAsTheirRequests(t *testing.T) {
	leasing(t, func(t *testing.T, g *admission.Gate) {
		ctx, cancel := context.WithCancel(context.Background())
		long, short := g.Admit(request("/").WithContext(ctx)), g.Admit(request("/"))
		wantOutcome(t, g.Admit(request("/")), admission.Denied)
		short.Finish(status(200))
		cancel() // the client goes, and the work goes on
		for range 100 {
			time.Sleep(17 * time.Second)
			if a := g.Admit(request("/")); a.Decision.Remaining != 0 || !a.Outcome.Pass() {
				t.Fatalf("%v, %d remain, want 0", a.Outcome, a.Decision.Remaining)
			} else {
				a.Finish(status(200))
				a.Finish(status(200))
			}
		}
		long.Finish(status(200))
		synctest.Wait() // the lease may be renewed just now
		if a := g.Admit(request("/")); a.Decision.Remaining != 1 {
			t.Errorf("%d remain, want 1", a.Decision.Remaining)
		} else {
			a.Finish(status(200))
		}
		synctest.Wait()
		time.Sleep(time.Hour) // a timer that was left would make the bubble go on
	})
}

// Of several leases the shortest says how often they are renewed, wherever it stands.
func TestTheShortestLeaseIsKept(t *testing.T) {
	for _, limits := range []string{"concurrent 2 lease=3s, concurrent 2 lease=5m", "concurrent 2 lease=5m, concurrent 2 lease=3s", "5/1s, concurrent 2 lease=5m, concurrent 2 lease=3s, concurrent 2 lease=1h"} {
		synctest.Test(t, func(t *testing.T) {
			g := gate(t, policies(t, "policies: [{name: busy, key: all, limits: ["+limits+"]}]", policy.Options{}), admission.Options{Log: silent})
			held := g.Admit(request("/"))
			time.Sleep(20*time.Second + time.Millisecond)
			other := g.Admit(request("/"))
			for s := range other.Each() {
				if s.Limit.Algorithm == weir.Concurrent && s.Decision.Remaining != 0 {
					t.Errorf("%s: of %v %d remain, want 0", limits, s.Limit, s.Decision.Remaining)
				}
			}
			other.Finish(status(200))
			held.Finish(status(200))
		})
	}
}

// The cost of a request is how much of a concurrent limit it is.
func TestLeasesOfSeveralUnits(t *testing.T) {
	g := gate(t, limiter(t, "concurrent 10 lease=30s"), admission.Options{Cost: func(r *http.Request) int64 { return r.ContentLength }})
	admit := func(n int64) admission.Admission {
		r := request("/")
		r.ContentLength = n
		return g.Admit(r)
	}
	six := admit(6)
	wantOutcome(t, six, admission.Admitted)
	wantOutcome(t, admit(5), admission.Denied)
	wantOutcome(t, admit(11), admission.Excessive)
	peek := admit(0)
	if wantOutcome(t, peek, admission.Admitted); peek.Held() || peek.Decision.Remaining != 4 {
		t.Errorf("a peek holds %v, of %d", peek.Held(), peek.Decision.Remaining)
	}
	six.Finish(status(200))
	if a := admit(0); a.Decision.Remaining != 10 {
		t.Errorf("%d remain, want 10", a.Decision.Remaining)
	}
}

// With Charge, policies hold a lease and an estimate, and both end.
func TestLeasesAndEstimatesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := policies(t, "policies: [{name: p, key: [client_ip], limits: [fixed-window 100/48h, concurrent 1 lease=30s]}]", policy.Options{})
		g := gate(t, set, admission.Options{Charge: admission.Size, Hold: time.Hour})
		a := g.Admit(request("/"))
		// and not at the instant of a renewal, to which Finish leaves the rest
		time.Sleep(10*time.Minute + time.Millisecond)
		wantEach(t, g.Admit(request("/")), "p/1", "p/2!")
		a.Finish(admission.Response{Bytes: 40})
		a = g.Admit(request("/"))
		if _, left := each(&a); left[0] != 59 || left[1] != 0 {
			t.Errorf("%d remain, want 59 and none", left)
		}
		a.Finish(admission.Response{})
	})
}

// What a candidate holds for a request that is denied is given back: nobody serves it.
func TestCandidatesOfDeniedRequests(t *testing.T) {
	set := policies(t, "policies: [{name: p, key: [client_ip], limits: [fixed-window 1/24h], candidate: [concurrent 3 lease=1h]}]", policy.Options{})
	g := gate(t, set, admission.Options{})
	first := g.Admit(request("/"))
	first.Finish(status(200))
	for range 5 {
		a := g.Admit(request("/"))
		if wantOutcome(t, a, admission.Denied); a.Held() {
			t.Error("a request that was denied holds something")
		}
	}
	if denied := set.Stats()[0].CandidateDenied; denied != 0 {
		t.Errorf("the candidate would have denied %d", denied)
	}
}

// A slowStore takes its time to renew, and may fail.
type slowStore struct {
	store.Store

	mu    sync.Mutex
	takes time.Duration
	fails error
}

func (s *slowStore) set(takes time.Duration, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.fails = takes, fails
}

type slowBinding struct {
	store.Binding

	of *slowStore
}

func (s *slowStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return &slowBinding{b, s}, err
}

func (b *slowBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.of.mu.Lock()
	takes, fails := b.of.takes, b.of.fails
	b.of.mu.Unlock()
	if op.Kind == algorithm.Renew || op.Kind == algorithm.Reserve {
		time.Sleep(takes)
		if fails != nil {
			return algorithm.Verdict{}, fails
		}
	}
	return b.Binding.Do(ctx, key, op, now)
}

func (b *slowBinding) Now() int64 { return b.Binding.(store.Clock).Now() }

// A request that is answered while its lease is being renewed does not wait for that, and leaves no lease.
func TestFinishWhileTheLeaseIsRenewed(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, s store.Store) *admission.Gate{
		"limiter": func(t *testing.T, s store.Store) *admission.Gate {
			return gate(t, limiter(t, "concurrent 2 lease=30s", weir.WithStore(s)), admission.Options{})
		},
		"policies": func(t *testing.T, s store.Store) *admission.Gate {
			return gate(t, policies(t, twoAtOnce, policy.Options{Store: s}), admission.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowStore{Store: memory.New(memory.Options{}), takes: 5 * time.Second}
				g := build(t, s)
				a := g.Admit(request("/"))
				time.Sleep(12 * time.Second)
				began := time.Now()
				if a.Finish(status(200)); time.Since(began) > 0 {
					t.Errorf("Finish took %v", time.Since(began))
				}
				time.Sleep(4 * time.Second)
				a = g.Admit(request("/"))
				if a.Decision.Remaining != 1 {
					t.Errorf("%d remain after the renewal, want 1", a.Decision.Remaining)
				}
				a.Finish(status(200))
			})
		})
	}
}

// A renewal that fails is tried again, and logged; a lease that is lost is logged, and the request goes on.
func TestRenewalsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		s := &slowStore{Store: memory.New(memory.Options{}), fails: errors.New("no answer")}
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		g := gate(t, l, admission.Options{Log: logTo(&log)})
		a := g.Admit(request("/"))
		time.Sleep(25 * time.Second)
		if n := strings.Count(log.String(), "no answer"); n != 2 {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
		s.set(0, nil)
		time.Sleep(10 * time.Second)
		wantOutcome(t, g.Admit(request("/")), admission.Denied)

		s.set(time.Minute, nil) // a renewal hangs
		time.Sleep(45 * time.Second)
		s.set(0, nil)
		other := g.Admit(request("/"))
		wantOutcome(t, other, admission.Admitted)
		time.Sleep(time.Minute)
		if n := strings.Count(log.String(), "others have its place"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
		time.Sleep(time.Minute)
		if n := strings.Count(log.String(), "was not renewed"); n != 3 {
			t.Errorf("what is lost is renewed: logged %d times:\n%s", n, &log)
		}
		a.Finish(status(200))
		wantOutcome(t, g.Admit(request("/")), admission.Denied)
		other.Finish(status(200))
		if strings.Contains(log.String(), peer) {
			t.Errorf("the log has the client's address:\n%s", &log)
		}
	})
}

// That a lease was over when its request was answered is logged.
func TestLeasesThatWereOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		s := &slowStore{Store: memory.New(memory.Options{}), fails: errors.New("no answer")}
		g := gate(t, policies(t, twoAtOnce, policy.Options{Store: s}), admission.Options{Log: logTo(&log)})
		a := g.Admit(request("/"))
		time.Sleep(time.Minute + time.Millisecond) // and not at the instant of a renewal
		a.Finish(status(200))
		if n := strings.Count(log.String(), "was not settled"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
	})
}

// A leaky queue's turn is waited for, and goes back if nobody waits for it.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*admission.Gate{
			gate(t, limiter(t, "leaky-queue 1/1s queue=2"), admission.Options{}),
			gate(t, limiter(t, "leaky-queue 1/1s queue=2", weir.WithName("n")), admission.Options{Charge: admission.Successes}),
			gate(t, policies(t, "policies: [{name: q, key: all, limits: [leaky-queue 1/1s queue=2]}]", policy.Options{}), admission.Options{}),
		} {
			began := time.Now()
			for i := range 3 {
				a := g.Admit(request("/"))
				wantOutcome(t, a, admission.Admitted)
				if i == 1 {
					time.Sleep(300 * time.Millisecond) // of the turn's time
				}
				if err := a.Await(t.Context()); err != nil || time.Since(began) != time.Duration(i)*time.Second {
					t.Errorf("turn %d came after %v, error %v", i, time.Since(began), err)
				}
				a.Finish(status(200))
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestAwaitGivesUpItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*admission.Gate{
			gate(t, limiter(t, "leaky-queue 1/1s queue=2"), admission.Options{}),
			gate(t, limiter(t, "leaky-queue 1/1s queue=2", weir.WithName("n")), admission.Options{Charge: admission.Successes}),
		} {
			var list []admission.Admission
			for range 3 {
				list = append(list, g.Admit(request("/")))
			}
			wantOutcome(t, g.Admit(request("/")), admission.Denied)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := list[2].Await(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
			list[2].Finish(status(500)) // changes nothing any more
			a := g.Admit(request("/"))
			if wantOutcome(t, a, admission.Admitted); a.Decision.Delay != 2*time.Second {
				t.Errorf("the turn comes in %v, want 2s", a.Decision.Delay)
			}
			time.Sleep(time.Hour)
		}
	})
}
