package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
)

// An expired reservation is charged in full by a late commit: the cost of the request, as debt
// where there is no room; the policy's own cost where the policy has one. A lease is left alone.
func TestCommitLate(t *testing.T) {
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
	for _, cost := range []int64{-1, policy.MaxCost + 1} {
		var wrong *policy.RequestError
		if err := s.CommitLate(t.Context(), d.Token, cost); !errors.As(err, &wrong) {
			t.Errorf("at the cost %d the error is %v", cost, err)
		}
	}
	if err := s.CommitLate(t.Context(), d.Token, 70); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/said", 30, 0)
	s.wantLeft("/fixed", 97)
	s.wantLeft("/busy", 2)
	s.wait(48 * time.Hour)
	s.wantLeft("/said", 100, 30) // 20 became debt
	if err := s.CommitLate(t.Context(), d.Token, 0); err != nil {
		t.Errorf("at nothing the error is %v", err)
	}
}

// Renewals keep reservations, of all roles, for as long as the work takes.
func TestReservationsAreRenewed(t *testing.T) {
	s := newTimed(t, holdYAML, policy.Options{})
	token := s.hold("300", 10*time.Second).Token
	for range 30 {
		s.wait(9 * time.Second)
		var err error
		if token, err = s.Renew(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		s.wantLeft("/", 9, 700, 2, 200)
	}
	if err := s.Commit(t.Context(), token, 120); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 9, 880, 3, 380)
}

// A renewal takes an expired reservation again. Without room the token stays valid for a later
// renewal, and for a late commit.
func TestReservationsThatExpiredAreRenewed(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, key: all, limits: [fixed-window 10/48h], cost: \"attribute:tokens\"}]", policy.Options{})
	token := s.hold("6", time.Minute).Token
	s.wait(time.Hour)
	s.wantLeft("/", 10)
	renewed, err := s.Renew(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 4)
	s.wait(time.Hour)
	other := s.hold("7", 2*time.Hour)
	if renewed, err = s.Renew(t.Context(), renewed); !errors.Is(err, policy.ErrSettled) || renewed == "" {
		t.Fatalf("renewed without room: %q, %v", renewed, err)
	}
	s.wantLeft("/", 3)
	if err := s.Cancel(t.Context(), other.Token); err != nil {
		t.Fatal(err)
	}
	if renewed, err = s.Renew(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 4)
	if err := s.CommitLate(t.Context(), renewed, 12); err != nil {
		t.Fatal(err)
	}
	s.wait(48 * time.Hour)
	s.wantLeft("/", 8)
}
