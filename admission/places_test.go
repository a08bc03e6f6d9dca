package admission_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
)

// When a place is free nobody knows, and the end of a lease, which is renewed, does not say. So who is denied a place is asked to come back soon; what else denied counts as ever.
func TestWhenToComeBackForAPlace(t *testing.T) {
	const document = "policies: [{name: busy, key: all, limits: [concurrent 1 lease=30s, fixed-window 2/1h]}, {name: seen, key: all, mode: shadow, limits: [fixed-window 1/2h]}]"
	for name, c := range map[string]struct {
		gate func(t *testing.T) *admission.Gate
		want []time.Duration // of the requests after the first, which is under way
	}{
		"limiter": {func(t *testing.T) *admission.Gate {
			return gate(t, limiter(t, "concurrent 1 lease=30s"), admission.Options{})
		}, []time.Duration{time.Second, time.Second}},
		"a lease that is shorter": {func(t *testing.T) *admission.Gate {
			return gate(t, limiter(t, "concurrent 1 lease=300ms"), admission.Options{})
		}, []time.Duration{300 * time.Millisecond}},
		"a rate": {func(t *testing.T) *admission.Gate {
			return gate(t, limiter(t, "1/30s burst=1"), admission.Options{})
		}, []time.Duration{30 * time.Second}},
		"policies": {func(t *testing.T) *admission.Gate {
			return gate(t, policies(t, document, policy.Options{}), admission.Options{})
		}, []time.Duration{time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := c.gate(t)
				first := g.Admit(request("/"))
				wantOutcome(t, first, admission.Admitted)
				for _, want := range c.want {
					a := g.Admit(request("/"))
					wantOutcome(t, a, admission.Denied)
					if a.Decision.RetryAfter != want {
						t.Errorf("it is to come back after %v, want %v", a.Decision.RetryAfter, want)
					}
					for s := range a.Each() {
						if got := s.Decision.RetryAfter; got > 0 && got != want {
							t.Errorf("%s says to come back after %v, want %v", s.Name, got, want)
						}
					}
				}
				first.Finish(status(200))
			})
		})
	}
}

// Where a rate denies too, its wait is the longer one.
func TestWhenToComeBackForAPlaceAndMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const document = "policies: [{name: busy, key: all, limits: [1/10s burst=1, concurrent 1 lease=30s]}]"
		g := gate(t, policies(t, document, policy.Options{}), admission.Options{})
		first := g.Admit(request("/"))
		a := g.Admit(request("/"))
		if wantOutcome(t, a, admission.Denied); a.Decision.RetryAfter != 10*time.Second {
			t.Errorf("it is to come back after %v, want 10 s", a.Decision.RetryAfter)
		}
		first.Finish(status(200))
	})
}
