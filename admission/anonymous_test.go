package admission_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// An endingStore takes, and can't be reached when what was taken is given back or renewed.
type endingStore struct{ store.Store }

func (s endingStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return ending{b}, err
}

type ending struct{ store.Binding }

func (e ending) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if op.Kind == algorithm.Take || op.Kind == algorithm.Reserve {
		return e.Binding.Do(ctx, key, op, now)
	}
	return algorithm.Verdict{}, errors.New("no answer")
}

// A foreignStore has something else under every key.
type foreignStore struct{ store.Store }

func (s foreignStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (foreignStore) Do(_ context.Context, key string, _ algorithm.Op, _ int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, &store.KeyError{Key: key, Err: errors.New("no state")}
}

// Nothing that a request says is logged: not who asked, when what it held is not given back, nor when there is no state to decide by.
func TestTheLogDoesNotSayWhoAsked(t *testing.T) {
	const who = "ann@example.com"
	key := identity.Key{identity.Header("X-User")}
	stores := map[string]func() store.Store{
		"ending":  func() store.Store { return endingStore{memory.New(memory.Options{})} },
		"foreign": func() store.Store { return foreignStore{} },
	}
	for _, text := range []string{"concurrent 1 lease=1h", "leaky-queue 1/1h queue=2", "5/1h"} {
		for name, open := range stores {
			for _, charge := range []bool{false, true} {
				if charge && text[0] == 'c' {
					continue
				}
				var log logged
				opts := admission.Options{Log: logTo(&log)}
				if charge {
					opts.Charge = admission.Failures
				}
				set := policies(t, "policies: [{name: a, key: ['header:X-User'], limits: ["+text+"]}]", policy.Options{Store: open(), Log: silent})
				ofSet := gate(t, set, opts)
				opts.Key = key
				ofLimiter := gate(t, limiter(t, text, weir.WithStore(open()), weir.WithName("a")), opts)
				for _, g := range []*admission.Gate{ofLimiter, ofLimiter, ofSet, ofSet} {
					r := request("/")
					r.Header.Set("X-User", who)
					a := g.Admit(r)
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					_ = a.Await(ctx)
					a.Finish(admission.Response{Status: http.StatusUnauthorized})
				}
				if strings.Contains(log.String(), who) || log.Len() == 0 && (name == "foreign" || charge || text[0] == 'c') {
					t.Errorf("%s, %s, charged %v: logged %q", text, name, charge, log.String())
				}
			}
		}
	}
}

// Nor do policies that only watch say it.
func TestPoliciesDoNotLogWhoAsked(t *testing.T) {
	const who = "ann@example.com"
	var log logged
	set := policies(t, "policies: [{name: a, key: ['header:X-User'], mode: shadow, limits: [5/1h]}]", policy.Options{Store: foreignStore{}, Log: logTo(&log)})
	wantOutcome(t, gate(t, set, admission.Options{Log: silent}).Admit(request("/", "X-User", who)), admission.Admitted)
	if text := log.String(); strings.Contains(text, who) || !strings.Contains(text, "not decided") {
		t.Errorf("logged %q", text)
	}
}
