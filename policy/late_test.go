package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
)

// What is late is charged where the request says its cost, as far as there is room; a lease is left alone, and what the policy says costs what it says.
func TestTakeLate(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: said, key: all, match: {path: [/job, /said]}, cost: "attribute:cost", limits: [fixed-window 100/48h, fixed-window 50/48h]}
  - {name: fixed, key: all, match: {path: [/job, /fixed]}, cost: 3, limits: [fixed-window 100/48h]}
  - {name: busy, key: all, match: {path: [/job, /busy]}, limits: [concurrent 2 lease=1h]}
`, policy.Options{})
	r := request("GET /job", "cost=10")
	r.Hold = time.Minute
	d := check(t, s.Set, r)
	s.wait(2 * time.Minute)
	if err := s.TakeLate(t.Context(), d.Token, 70); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/said", 30, 0)
	s.wantLeft("/fixed", 97)
	s.wantLeft("/busy", 1)
	for _, cost := range []int64{-1, policy.MaxCost + 1} {
		var wrong *policy.RequestError
		if err := s.TakeLate(t.Context(), d.Token, cost); !errors.As(err, &wrong) {
			t.Errorf("of the cost %d the error is %v", cost, err)
		}
	}
}
