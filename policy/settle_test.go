package policy_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store/memory"
)

const leasesYAML = `
policies:
  - {name: jobs, match: {path: /job}, key: client_ip, cost: 5, limits: [concurrent 2 lease=30s, fixed-window 100/1h]}
`

// left is what remains, without a charge.
func (s *timed) left(path string) []int64 {
	s.t.Helper()
	zero := int64(0)
	r := request("GET " + path)
	r.Cost = &zero
	return remaining(check(s.t, s.Set, r))
}

func (s *timed) wantLeft(path string, want ...int64) {
	s.t.Helper()
	if got := s.left(path); !slices.Equal(got, want) {
		s.t.Errorf("there remain %v, want %v", got, want)
	}
}

// A lease is one for each request, whatever it costs, beside rates that know the cost.
func TestLeasesAreReleased(t *testing.T) {
	s := newTimed(t, leasesYAML, policy.Options{})
	first := s.check("GET /job")
	wantRemaining(t, first, true, 1, 95)
	s.wait(time.Second)
	second := s.check("GET /job")
	d := s.check("GET /job")
	wantRemaining(t, d, false, 0, 90)
	if d.RetryAfter != 29*time.Second || d.Token != "" || first.Token == "" {
		t.Errorf("the third is %+v", d)
	}
	if err := s.Release(t.Context(), first.Token); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/job", 1, 90)
	if err := s.Release(t.Context(), first.Token); !errors.Is(err, policy.ErrSettled) {
		t.Errorf("released again: %v", err)
	}
	s.wantLeft("/job", 1, 90)
	if err := s.Cancel(t.Context(), second.Token); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/job", 2, 90)
	d = s.check("GET /job")
	s.wait(30 * time.Second) // its holder died
	s.wantLeft("/job", 2, 85)
	if err := s.Release(t.Context(), d.Token); !errors.Is(err, policy.ErrSettled) {
		t.Errorf("released when it was over: %v", err)
	}
}

func TestLeasesAreRenewed(t *testing.T) {
	s := newTimed(t, leasesYAML, policy.Options{})
	token := s.check("GET /job").Token
	for range 5 {
		s.wait(20 * time.Second)
		renewed, err := s.Renew(t.Context(), token)
		if err != nil || renewed == token {
			t.Fatalf("%q, error %v", renewed, err)
		}
		token = renewed
		s.wantLeft("/job", 1, 95)
	}
	s.wait(31 * time.Second)
	s.check("GET /job")
	s.check("GET /job")
	if renewed, err := s.Renew(t.Context(), token); !errors.Is(err, policy.ErrSettled) || renewed != "" {
		t.Errorf("renewed when others have its place: %q, %v", renewed, err)
	}
}

// Several leases that are lost are one error.
func TestLeasesThatAreLostTogether(t *testing.T) {
	s := newTimed(t, "policies: [{name: a, key: client_ip, limits: [concurrent 1 lease=1m, concurrent 1 lease=2m, concurrent 9 lease=1h]}]", policy.Options{})
	token := s.check("GET /").Token
	s.wait(2 * time.Minute)
	s.check("GET /")
	renewed, err := s.Renew(t.Context(), token)
	if !errors.Is(err, policy.ErrSettled) || err.Error() != policy.ErrSettled.Error() || renewed == "" {
		t.Errorf("%q, error %v", renewed, err)
	}
	s.wantLeft("/", 0, 0, 7)
	if err := s.Release(t.Context(), renewed); err != nil {
		t.Error(err)
	}
	s.wantLeft("/", 0, 0, 8)
}

const holdYAML = `
policies:
  - {name: calls, key: client_ip, limits: [fixed-window 10/1h]}
  - {name: tokens, key: client_ip, limits: [fixed-window 1000/1h, concurrent 3 lease=1m], cost: "attribute:tokens", candidate: [fixed-window 500/1h]}
`

func (s *timed) hold(tokens string, d time.Duration) policy.Decision {
	s.t.Helper()
	r := request("GET /", "tokens="+tokens)
	r.Hold = d
	return check(s.t, s.Set, r)
}

// An estimate is for the policies that say no cost, and so is what it is settled at.
func TestEstimate(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: bytes, key: client_ip, limits: [fixed-window 1000/1h]}
  - {name: calls, key: client_ip, limits: [fixed-window 10/1h], cost: 1}
  - {name: tokens, key: client_ip, limits: [fixed-window 500/1h], cost: "attribute:tokens"}
`, policy.Options{})
	estimate := int64(40)
	r := request("GET /", "tokens=100")
	r.Hold, r.Estimate = time.Minute, &estimate
	d := check(t, s.Set, r)
	wantRemaining(t, d, true, 960, 9, 400)
	if err := s.Commit(t.Context(), d.Token, 70); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 930, 9, 430)
	two := int64(2)
	r.Cost = &two // which is for all
	wantRemaining(t, check(t, s.Set, r), true, 928, 7, 428)
	for _, wrong := range []int64{-1, policy.MaxCost + 1} {
		r.Cost, r.Estimate = nil, &wrong
		var said *policy.RequestError
		if _, err := s.Check(t.Context(), r); !errors.As(err, &said) || said.Field != "estimate" {
			t.Errorf("an estimate of %d: %v", wrong, err)
		}
	}
}

// Pay later: the estimate is charged, and then what it was.
func TestPayLater(t *testing.T) {
	s := newTimed(t, holdYAML, policy.Options{})
	d := s.hold("300", time.Minute)
	wantRemaining(t, d, true, 9, 700, 2, 200)
	if err := s.Commit(t.Context(), d.Token, 120); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 9, 880, 3, 380) // the call stays one call
	if err := s.Commit(t.Context(), d.Token, 120); !errors.Is(err, policy.ErrSettled) {
		t.Errorf("committed twice: %v", err)
	}
	d = s.hold("100", time.Minute)
	if err := s.Commit(t.Context(), d.Token, 180); err != nil { // more
		t.Fatal(err)
	}
	s.wantLeft("/", 8, 700, 3, 200)
	if err := s.Cancel(t.Context(), s.hold("100", time.Minute).Token); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 8, 700, 3, 200)
	if err := s.Release(t.Context(), s.hold("100", time.Minute).Token); err != nil { // at its estimate, for good
		t.Fatal(err)
	}
	s.wait(2 * time.Minute)
	s.wantLeft("/", 7, 600, 3, 100)
	d = s.hold("100", time.Minute) // forgotten: given back
	s.wait(2 * time.Minute)
	s.wantLeft("/", 7, 600, 3, 100)
	if err := s.Commit(t.Context(), d.Token, 100); !errors.Is(err, policy.ErrSettled) {
		t.Errorf("committed when it was over: %v", err)
	}
	if d = s.hold("900", time.Minute); d.Allowed || d.Token != "" {
		t.Errorf("what is denied holds %+v", d)
	}
	s.wantLeft("/", 7, 600, 3, 100)
	for _, hold := range []time.Duration{-1, 1, time.Hour * 25} {
		r := request("GET /")
		r.Hold = hold
		var wrong *policy.RequestError
		if _, err := s.Check(t.Context(), r); !errors.As(err, &wrong) || wrong.Field != "hold" {
			t.Errorf("held for %v: %v", hold, err)
		}
	}
	var wrong *policy.RequestError
	if err := s.Commit(t.Context(), d.Token, -1); !errors.As(err, &wrong) {
		t.Errorf("committed at −1: %v", err)
	}
}

// A cost that is known at the end only: nothing is charged before, and the lease counts.
func TestPayLaterFromNothing(t *testing.T) {
	s := newTimed(t, holdYAML, policy.Options{})
	d := s.hold("0", time.Minute)
	wantRemaining(t, d, true, 9, 1000, 2, 500)
	if err := s.Commit(t.Context(), d.Token, 1200); err != nil { // more than there is room for
		t.Fatal(err)
	}
	d = s.hold("1", time.Minute)
	if d.Allowed || d.Each[1].Remaining != 0 || d.Each[1].RetryAfter < time.Hour {
		t.Errorf("who owes has %+v", d)
	}
}

// Tokens work in every set with the store and the key, also after a change of the configuration.
func TestTokensOutliveChanges(t *testing.T) {
	o := policy.Options{Store: memory.New(memory.Options{}), TokenKeys: [][]byte{bytes.Repeat([]byte("k"), policy.MinTokenKey)}}
	s := newTimed(t, holdYAML, o)
	d := s.hold("300", time.Hour)
	s.replace(`
policies:
  - {name: tokens, key: client_ip, limits: [fixed-window 2000/1h, concurrent 4 lease=2m], cost: "attribute:tokens"}
`)
	s.wantLeft("/", 1700, 3)
	other := newTimed(t, "policies: []", o) // which knows nothing of it
	if err := other.Commit(t.Context(), d.Token, 100); err != nil {
		t.Fatal(err)
	}
	s.wantLeft("/", 1900, 4)
}

func TestTokensThatAreNone(t *testing.T) {
	s := newTimed(t, leasesYAML, policy.Options{})
	token := s.check("GET /job").Token
	bad := []string{"", "x", "AAAA", "AQAAAAAAAA", token[:len(token)-1], token + "A", token[:10] + "A" + token[11:], string(make([]byte, 100_000))}
	for _, text := range bad {
		if text == token {
			continue
		}
		for _, settle := range []func() error{
			func() error { return s.Release(t.Context(), text) },
			func() error { return s.Commit(t.Context(), text, 1) },
			func() error { return s.Cancel(t.Context(), text) },
			func() error { _, err := s.Renew(t.Context(), text); return err },
			func() error { return s.CommitLate(t.Context(), text, 1) },
		} {
			if err := settle(); !errors.Is(err, policy.ErrToken) {
				t.Errorf("of %.40q the error is %v", text, err)
			}
		}
	}
	s.wantLeft("/job", 1, 95)
}

// When the time of a hold is over nothing is charged, and who commits is told, also where leases go on.
func TestAReservationEndsBeforeItsLeases(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: tokens, key: client_ip, limits: [fixed-window 1000/1h, concurrent 3 lease=1m], cost: "attribute:tokens"}
  - {name: beside, key: client_ip, limits: [fixed-window 1000/1h], cost: "attribute:tokens", mode: shadow}
`, policy.Options{})
	for name, settle := range map[string]func(token string) error{
		"commit":  func(token string) error { return s.Commit(t.Context(), token, 300) },
		"release": func(token string) error { return s.Release(t.Context(), token) },
		"cancel":  func(token string) error { return s.Cancel(t.Context(), token) },
	} {
		token := s.hold("300", time.Second).Token
		s.wantLeft("/", 700, 2, 700)
		s.wait(2 * time.Second)
		s.wantLeft("/", 1000, 2, 1000)
		if err := settle(token); !errors.Is(err, policy.ErrSettled) || !strings.Contains(err.Error(), "no cost was charged") {
			t.Errorf("%s: %v", name, err)
		}
		s.wantLeft("/", 1000, 3, 1000) // the lease is given back
	}
	// A lease that is over is no harm: the cost is charged.
	token := s.hold("300", time.Hour).Token
	s.wait(2 * time.Minute)
	if err := s.Commit(t.Context(), token, 100); err != nil {
		t.Error(err)
	}
	s.wantLeft("/", 900, 3, 900)
}
