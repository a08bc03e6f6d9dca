package httplimit_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// What one client is told is not what another was told before, though as much is left to both.
func TestClientsAreToldTheirOwn(t *testing.T) {
	now := noon()
	l := newLimiter(t, "quota-reset 2/1h", weir.WithClock(func() time.Time { return now }))
	h := limit(t, l, httplimit.Options{Name: "a", Key: identity.Key{identity.Header("X-Client")}}, okHandler)
	said := func(client string) string {
		got := one(h, http.MethodGet, func(r *http.Request) *http.Request {
			r.Header.Set("X-Client", client)
			return r
		})
		return fmt.Sprintf("%d %s %s", got.status, list(t, got.header, "RateLimit")["a"], got.header["Retry-After"])
	}
	for i, want := range []struct{ client, said string }{
		{"ann", "200 r=1;t=3600 []"}, {"bob", "200 r=1;t=3600 []"}, {"bob", "200 r=0;t=3540 []"}, {"ann", "200 r=0;t=3420 []"},
		{"ann", "429 r=0;t=3360 [3360]"}, {"bob", "429 r=0;t=3360 [3360]"}, {"ann", "429 r=0;t=3240 [3240]"},
	} {
		if got := said(want.client); got != want.said {
			t.Errorf("request %d, of %s: %s, want %s", i+1, want.client, got, want.said)
		}
		now = now.Add(time.Minute)
	}
}

// A limiter's new limit is told at once.
func TestChangedLimitIsTold(t *testing.T) {
	l := newLimiter(t, "quota-reset 2/1h", weir.WithName("calls"))
	h := limit(t, l, httplimit.Options{Name: "calls"}, okHandler)
	for i, want := range []string{"q=2;w=3600 r=1;t=3600", "q=9;w=3600 r=7;t=3600", "q=3;w=60 r=0;t=60"} {
		if i > 0 {
			if err := l.SetLimit(weir.MustParseLimit([]string{"", "quota-reset 9/1h", "quota-reset 3/1m"}[i])); err != nil {
				t.Fatal(err)
			}
		}
		got := one(h, http.MethodGet, nil)
		if said := list(t, got.header, "RateLimit-Policy")["calls"] + " " + list(t, got.header, "RateLimit")["calls"]; said != want {
			t.Errorf("under limit %d: %s, want %s", i+1, said, want)
		}
	}
}

// Each refusal names what denied it, though others came before.
func TestRefusalsAreTheirOwn(t *testing.T) {
	h := limit(t, newSet(t, `
policies:
  - {name: a, match: {path: /a}, key: ["header:X-Key"], limits: [1/1h], plans: {blocked: deny}}
  - {name: b, match: {path: [/b, /a]}, key: ["header:X-Key"], limits: [quota-reset 1/1h]}
`, policy.Options{Clients: plans{"eve": "blocked"}}), httplimit.Options{}, okHandler)
	for i, want := range []struct {
		path, key, said string
	}{
		{"/b", "ann", "200 []"},
		{"/b", "ann", ianaQuota + " [b]"},
		{"/a", "ann", ianaQuota + " [b]"},
		{"/a", "bob", "200 []"},
		{"/a", "bob", ianaQuota + " [a b]"},
		{"/a", "eve", "about:blank [a]"},
		{"/b", "bob", ianaQuota + " [b]"},
	} {
		got := one(h, http.MethodGet, func(r *http.Request) *http.Request {
			r.URL.Path = want.path
			r.Header.Set("X-Key", want.key)
			return r
		})
		said := "200 []"
		if got.status != 200 {
			d := got.problem(t)
			said = fmt.Sprint(d.Type, " ", d.Violated)
		}
		if said != want.said {
			t.Errorf("request %d: %s, want %s", i+1, said, want.said)
		}
	}
}

// Limits that are the same, of policies that are not, are told by their names; also by many at once.
func TestNamesAreTold(t *testing.T) {
	h := limit(t, newSet(t, `
policies:
  - {name: a, match: {path: /a}, key: ["header:X-Key"], limits: [quota-reset 9/1h]}
  - {name: b, match: {path: /b}, key: ["header:X-Key"], limits: [quota-reset 9/1h]}
`, policy.Options{}), httplimit.Options{}, okHandler)
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for i := range 9 {
				name := string("ab"[client%2])
				got := one(h, http.MethodGet, func(r *http.Request) *http.Request {
					r.URL.Path = "/" + name
					r.Header.Set("X-Key", fmt.Sprint(client))
					return r
				})
				if left := remaining(t, got.header); !maps.Equal(left, map[string]string{name: fmt.Sprint(8 - i)}) {
					t.Errorf("request %d: there remain %v", i+1, left)
				}
			}
		})
	}
	all.Wait()
}

// What can't pass has no Retry-After, whoever said one before.
func TestExcessiveHasNoRetryAfter(t *testing.T) {
	h := limit(t, newLimiter(t, "2/1h"), httplimit.Options{Cost: func(*http.Request) int64 { return 3 }}, okHandler)
	got := one(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "5")
		h.ServeHTTP(w, r)
	}), http.MethodGet, nil)
	if retry := got.header["Retry-After"]; got.status != 422 || !slices.Equal(retry, nil) {
		t.Errorf("%d, Retry-After is %q", got.status, retry)
	}
}

// One limit refuses for different reasons, and what is refused as invalid is told what would do.
func TestReasonsAreTold(t *testing.T) {
	h := limit(t, newLimiter(t, "2/1h"), httplimit.Options{Cost: func(r *http.Request) int64 { return int64(len(r.URL.Path)) - 1 }}, okHandler)
	for i, want := range []struct {
		path, kind, detail string
	}{
		{"/12", "", ""},
		{"/12", ianaQuota, "Retry-After says when"},
		{"/123", capacity, "more than a limit ever admits"},
		{"/12", ianaQuota, "Retry-After says when"},
		{"", "about:blank", "cost makes no sense; accepted: 0 or more"},
	} {
		got := one(h, http.MethodGet, func(r *http.Request) *http.Request {
			r.URL.Path = want.path
			return r
		})
		if want.kind == "" {
			continue
		}
		if d := got.problem(t); d.Type != want.kind || !strings.Contains(d.Detail, want.detail) {
			t.Errorf("request %d: %+v, want %s, %q", i+1, d, want.kind, want.detail)
		}
	}
}
