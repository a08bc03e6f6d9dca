package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A remoteStore counts its calls, each of which takes some time, unless its caller gives up.
type remoteStore struct {
	store.Store

	takes time.Duration
	calls atomic.Int64
}

func (s *remoteStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return &remoteBinding{b, s}, err
}

type remoteBinding struct {
	store.Binding

	store *remoteStore
}

func (b *remoteBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.store.calls.Add(1)
	select {
	case <-ctx.Done():
		return algorithm.Verdict{}, ctx.Err()
	case <-time.After(b.store.takes):
		return b.Binding.Do(ctx, key, op, now)
	}
}

// manyLimits returns a document with so many limits in all policies.
func manyLimits(limits int) string {
	document := "policies:\n"
	for i := 0; limits > 0; i++ {
		n := min(limits, 16)
		document += fmt.Sprintf("  - {name: p%d, key: all, limits: [%s]}\n", i, strings.TrimSuffix(strings.Repeat("fixed-window 1000/24h, ", n), ", "))
		limits -= n
	}
	return document
}

func settlements(s *policy.Set) map[string]func(ctx context.Context, token string) error {
	return map[string]func(ctx context.Context, token string) error{
		"Release":    s.Release,
		"Commit":     func(ctx context.Context, token string) error { return s.Commit(ctx, token, 1) },
		"CommitLate": func(ctx context.Context, token string) error { return s.CommitLate(ctx, token, 1) },
		"Cancel":     s.Cancel,
		"Renew":      func(ctx context.Context, token string) error { _, err := s.Renew(ctx, token); return err },
	}
}

// A token with a signature of a different set, or an altered token, makes no engine
// call.
func TestForgedTokensMakeNoEngineCall(t *testing.T) {
	shared := &remoteStore{Store: memory.New(memory.Options{})}
	forger, s := newSet(t, manyLimits(64), policy.Options{Store: shared}), newSet(t, manyLimits(64), policy.Options{Store: shared})
	r := request("GET /")
	r.Hold = time.Minute
	forged, token := check(t, forger, r).Token, check(t, s, r).Token
	if forged == "" || token == "" {
		t.Fatal("nothing is held")
	}
	before := shared.calls.Load()
	for name, settle := range settlements(s) {
		for _, text := range []string{forged, forged[:len(forged)-22] + token[len(token)-22:], token[:100] + "AAAA" + token[104:], token[:len(token)-1], token + "\n", token[:40] + "\r\n" + token[40:]} {
			if err := settle(t.Context(), text); !errors.Is(err, policy.ErrToken) {
				t.Errorf("%s of a forged token: %v", name, err)
			}
		}
	}
	if calls := shared.calls.Load() - before; calls != 0 {
		t.Errorf("forged tokens made %d engine calls", calls)
	}
	if err := s.Cancel(t.Context(), token); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

// A settlement takes as long as one call of the store, for any number of holdings, and ends if the
// store does not answer.
func TestSettlementsTakeTheTimeOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &remoteStore{Store: memory.New(memory.Options{})}
		s := newSet(t, manyLimits(64), policy.Options{Store: shared})
		r := request("GET /")
		r.Hold = time.Hour
		for name, settle := range settlements(s) {
			for takes, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 10 * time.Second} {
				token := check(t, s, r).Token
				began := time.Now()
				shared.takes = takes
				ctx, cancel := context.WithCancel(t.Context())
				if name != "Renew" {
					cancel() // which does not end a settlement
				}
				err := settle(ctx, token)
				cancel()
				if took := time.Since(began); took != want || (err == nil) != (takes == want) {
					t.Errorf("%s of 64 limits in a store that takes %v took %v, want %v; error %v", name, takes, took, want, err)
				}
				shared.takes = 0
			}
		}
	})
}

// A request with more than 64 holdings is refused, and nothing is charged. Limits that are
// not enforced are left out.
func TestMostHoldings(t *testing.T) {
	s := newSet(t, manyLimits(65), policy.Options{})
	r := request("GET /")
	r.Hold = time.Minute
	var wrong *policy.RequestError
	if _, err := s.Check(t.Context(), r); !errors.As(err, &wrong) || wrong.Value != "65 limits" {
		t.Errorf("the error is %v", err)
	}
	r.Hold = 0
	for i, left := range remaining(check(t, s, r)) {
		if left != 999 {
			t.Errorf("%d remain of limit %d, want 999", left, i)
		}
	}
	s = newSet(t, manyLimits(64)+"  - {name: shadow, key: all, limits: [10/24h], mode: shadow}\n", policy.Options{})
	r.Hold = time.Minute
	if d := check(t, s, r); len(d.Each) != 64 || d.Token == "" {
		t.Errorf("%d limits are decided, token %q", len(d.Each), d.Token)
	}
}

// A denied request holds nothing, also where a candidate admits it: the candidate is
// charged the estimate, and has its lease back.
func TestDeniedRequestsHoldNothing(t *testing.T) {
	s := newTimed(t, `
policies:
  - {name: a, key: all, limits: [fixed-window 1/24h], candidate: [fixed-window 5/24h, concurrent 3 lease=1h]}
  - {name: b, key: all, limits: [fixed-window 100/24h], mode: shadow}
`, policy.Options{})
	r := request("GET /")
	r.Hold = time.Minute
	first := check(t, s.Set, r)
	if !first.Allowed || first.Token == "" {
		t.Fatalf("%+v", first)
	}
	for i := range 3 {
		d := check(t, s.Set, r)
		if d.Allowed || d.Token != "" {
			t.Errorf("a denied request has the token %q", d.Token)
		}
		if left := remaining(d); left[1] != int64(3-i) || left[2] != 1 || left[3] != 99 {
			t.Errorf("there remain %v", left)
		}
	}
	s.wantLeft("/", 0, 1, 2, 99)
	s.wait(2 * time.Minute) // the first is given back; the rest are no reservations
	s.wantLeft("/", 1, 2, 2, 100)
}

// A key is at least 32 bytes, of which there are at most 4. A set without a key makes its own, and
// keeps it through changes of the policies.
func TestTokenKeys(t *testing.T) {
	c, err := policy.Parse([]byte(leasesYAML), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for want, keys := range map[string][][]byte{
		"weir: TokenKeys[0] is of 0 bytes; accepted: 32 or more, at random":  {nil},
		"weir: TokenKeys[1] is of 31 bytes; accepted: 32 or more, at random": {make([]byte, 32), make([]byte, 31)},
		"weir: TokenKeys has 5 keys; accepted: up to 4":                      make([][]byte, 5),
	} {
		if _, err := policy.New(c, policy.Options{TokenKeys: keys}); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	s := newTimed(t, leasesYAML, policy.Options{})
	token := s.check("GET /job").Token
	s.replace("policies: []")
	if err := s.Release(t.Context(), token); err != nil {
		t.Errorf("after the policies have changed: %v", err)
	}
	key := bytes.Repeat([]byte("k"), policy.MinTokenKey)
	o := policy.Options{Store: memory.New(memory.Options{}), TokenKeys: [][]byte{key}}
	first, second := newSet(t, leasesYAML, o), newSet(t, leasesYAML, policy.Options{Store: o.Store, TokenKeys: [][]byte{bytes.Repeat([]byte("n"), 40), bytes.Clone(key)}})
	clear(key) // the caller's memory is its own
	if err := second.Release(t.Context(), check(t, first, request("GET /job")).Token); err != nil {
		t.Errorf("signed with a previous key: %v", err)
	}
}
