package admission_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const loginsYAML = "policies: [{name: logins, key: [client_ip], limits: [fixed-window 5/1h]}]"

// logins runs a test of a gate that charges failures, over a limiter and over policies, in a bubble
// each. gate returns a gate over a store.
func logins(t *testing.T, run func(t *testing.T, gate func(s store.Store, opts admission.Options) *admission.Gate)) {
	t.Run("limiter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			run(t, func(s store.Store, opts admission.Options) *admission.Gate {
				return gate(t, limiter(t, "fixed-window 5/1h", weir.WithName("logins"), weir.WithStore(s)), opts)
			})
		})
	})
	t.Run("policies", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			run(t, func(s store.Store, opts admission.Options) *admission.Gate {
				return gate(t, policies(t, loginsYAML, policy.Options{Store: s}), opts)
			})
		})
	})
}

// However long its requests last, a client gets the count of failed attempts in an hour, and not
// the count in each Hold.
func TestSlowRequestsAreBounded(t *testing.T) {
	logins(t, func(t *testing.T, gate func(store.Store, admission.Options) *admission.Gate) {
		g := gate(memory.New(memory.Options{}), admission.Options{Charge: admission.Failures, Hold: time.Second, Log: silent})
		var wg sync.WaitGroup
		var failed atomic.Int64
		for i := range 3500 { // 58 minutes of one window
			for range 3 {
				a := g.Admit(request("/"))
				if !a.Outcome.Pass() {
					continue
				}
				wg.Go(func() {
					time.Sleep(time.Duration(1+i%7) * 900 * time.Millisecond)
					failed.Add(1)
					a.Finish(status(401))
				})
			}
			time.Sleep(time.Second)
		}
		wg.Wait()
		if failed.Load() != 5 {
			t.Errorf("%d attempts failed within an hour, want 5", failed.Load())
		}
	})
}

// A process without its store for longer than Hold loses its estimates, and further requests are
// admitted. Later the full cost is charged: the units of both are paid before anything else
// passes.
func TestLateSettlementsAreOwed(t *testing.T) {
	logins(t, func(t *testing.T, gate func(store.Store, admission.Options) *admission.Gate) {
		var log logged
		shared := memory.New(memory.Options{})
		away := &slowStore{Store: shared}
		opts := admission.Options{Charge: admission.Failures, Hold: time.Second, Log: silent}
		here := gate(shared, opts)
		opts.Log = logTo(&log)
		there := gate(away, opts)
		all := func(g *admission.Gate) (admitted []admission.Admission) {
			for range 6 {
				if a := g.Admit(request("/")); a.Outcome.Pass() {
					admitted = append(admitted, a)
				}
			}
			return admitted
		}
		slow := all(there)
		away.set(0, errors.New("no answer"))
		time.Sleep(10 * time.Second)
		fast := all(here)
		if len(slow) != 5 || len(fast) != 5 {
			t.Fatalf("%d and %d were admitted, want 5 each", len(slow), len(fast))
		}
		for _, a := range fast {
			a.Finish(status(401))
		}
		away.set(0, nil)
		time.Sleep(2 * time.Second) // renewals find no room
		for _, a := range slow {
			a.Finish(status(401))
		}
		for _, text := range []string{"no answer", "was not renewed", "others have its place"} {
			if !strings.Contains(log.String(), text) {
				t.Errorf("%q is not logged:\n%s", text, &log)
			}
		}
		for hour, want := range []int{0, 0, 5} { // the debt takes the second hour
			admitted := all(here)
			if len(admitted) != want {
				t.Errorf("%d were admitted in hour %d, want %d", len(admitted), hour+1, want)
			}
			for _, a := range admitted {
				a.Finish(status(401))
			}
			time.Sleep(time.Hour)
		}
	})
}

// An absence of the store for less than Hold costs nothing: the renewal is tried again.
func TestRenewalsOfEstimatesAreRetried(t *testing.T) {
	logins(t, func(t *testing.T, gate func(store.Store, admission.Options) *admission.Gate) {
		s := &slowStore{Store: memory.New(memory.Options{})}
		g := gate(s, admission.Options{Charge: admission.Failures, Hold: 30 * time.Second, Log: silent})
		a := g.Admit(request("/"))
		for range 20 {
			s.set(0, errors.New("no answer"))
			time.Sleep(11 * time.Second)
			s.set(0, nil)
			// and never at the instant of a renewal
			time.Sleep(14*time.Second + 300*time.Millisecond)
			other := g.Admit(request("/"))
			if other.Decision.Remaining != 3 {
				t.Fatalf("%d remain, want 3", other.Decision.Remaining)
			}
			other.Finish(status(200))
		}
		a.Finish(status(401))
		other := g.Admit(request("/"))
		if other.Decision.Remaining != 3 {
			t.Errorf("%d remain after a failure, want 3", other.Decision.Remaining)
		}
		other.Finish(status(200))
	})
}

// A process that stands still during a renewal is charged by Finish, after the
// renewal.
func TestFinishWhileAnEstimateIsRenewed(t *testing.T) {
	logins(t, func(t *testing.T, gate func(store.Store, admission.Options) *admission.Gate) {
		s := &slowStore{Store: memory.New(memory.Options{})}
		g := gate(s, admission.Options{Charge: admission.Failures, Hold: 3 * time.Second, Log: silent})
		list := []admission.Admission{g.Admit(request("/")), g.Admit(request("/"))}
		s.set(5*time.Second, nil)
		time.Sleep(2 * time.Second)
		for _, a := range list {
			a.Finish(status(401))
		}
		time.Sleep(20 * time.Second)
		s.set(0, nil)
		a := g.Admit(request("/"))
		if a.Decision.Remaining != 2 {
			t.Errorf("%d remain, want 2", a.Decision.Remaining)
		}
		a.Finish(status(200))
	})
}
