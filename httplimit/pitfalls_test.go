package httplimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/identity/bearer"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// Pitfall H1: Retry-After is whole seconds, rounded up, never 0, and who waits for so long passes.
func TestH1RetryAfter(t *testing.T) {
	for text, want := range map[string]string{
		"1000/1s burst=1": "1", "1/1s": "1", "1/1001ms": "2", "1/90s": "90", "fixed-window 1/500ms": "1", "fixed-window 1/1h": "3600", "concurrent 1 lease=1s": "1",
	} {
		now := noon()
		l := newLimiter(t, text, weir.WithClock(func() time.Time { return now }))
		take(t, l, "127.0.0.1", 1)
		url := serve(t, limit(t, l, httplimit.Options{}, okHandler))
		got := get(t, url)
		retry := got.header.Values("Retry-After")
		if got.status != 429 || !slices.Equal(retry, []string{want}) {
			t.Errorf("%s: %d, Retry-After is %q, want %s", text, got.status, retry, want)
		}
		seconds, _ := strconv.Atoi(want)
		now = now.Add(time.Duration(seconds) * time.Second)
		wantStatus(t, url, 200)
	}
}

// Pitfall H6: while the store can't decide, requests are answered as was chosen, with no word of why.
func TestH6StoreErrors(t *testing.T) {
	server := testengine.Redis(t)
	s, err := redis.Open(t.Context(), server.URL(), redis.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	l, err := weir.New(weir.MustParseLimit("3/1h"), weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	byChoice := map[store.OnError]string{}
	for _, choice := range []store.OnError{store.Deny, store.Allow, store.Local} {
		key := identity.Key{identity.Header("X-Client")}
		byChoice[choice] = serve(t, limit(t, l, httplimit.Options{Name: "calls", Key: key, OnStoreError: choice, Log: quiet, Headers: both}, okHandler))
		if got := get(t, byChoice[choice], fmt.Sprint("X-Client: ", choice)); got.status != 200 || remaining(t, got.header)["calls"] != "2" {
			t.Fatalf("while the store is there: %d %v", got.status, got.header)
		}
	}
	byPolicy := map[string]string{}
	for _, choice := range []string{"deny", "allow", "local"} {
		set := newSet(t, `policies: [{name: calls, key: all, limits: [2/1h], on_store_error: `+choice+`}]`, policy.Options{Store: s, Log: quiet})
		byPolicy[choice] = serve(t, limit(t, set, httplimit.Options{Log: quiet, Headers: both}, okHandler))
	}
	address := strings.TrimPrefix(server.URL(), "redis://")
	server.Stop(t)
	silent := func(got reply) {
		t.Helper()
		text := fmt.Sprint(got.header, got.body)
		for _, word := range []string{address, "redis", "dial", "refused", "EOF", "error"} {
			if strings.Contains(text, word) {
				t.Errorf("the answer says %q: %s", word, text)
			}
		}
	}
	for _, url := range []string{byChoice[store.Deny], byPolicy["deny"]} {
		got := get(t, url)
		if d := got.problem(t); got.status != 503 || d.Type != ianaReduced || got.header.Get("Retry-After") != "1" || got.header["Ratelimit"] != nil {
			t.Errorf("denied: %d %v", got.status, got.header)
		}
		silent(got)
	}
	for _, url := range []string{byChoice[store.Allow], byPolicy["allow"]} {
		for range 5 {
			if got := get(t, url); got.status != 200 || got.body != "ok" || got.header["Ratelimit"] != nil || got.header["X-Ratelimit-Limit"] != nil {
				t.Errorf("allowed: %d %v", got.status, got.header)
			}
		}
	}
	for url, room := range map[string]int{byChoice[store.Local]: 3, byPolicy["local"]: 2} {
		for i := range room + 1 {
			got := get(t, url)
			if want := max(0, room-1-i); remaining(t, got.header)["calls"] != strconv.Itoa(want) || (got.status == 200) != (i < room) {
				t.Errorf("here: request %d: %d %v", i+1, got.status, got.header)
			}
			silent(got)
		}
	}
}

// Pitfall H7: nothing that a client sends comes back, whatever the answer is.
func TestH7NothingIsEchoed(t *testing.T) {
	const said = "s3ntByTheClient"
	fields := func(r *http.Request) {
		r.Host, r.RemoteAddr = said+".example", said
		r.URL.Path, r.URL.RawQuery = "/api/"+said, said+"="+said
		for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Key", "X-Cost", "X-Request-Id", "Authorization", "Cookie", "User-Agent", "Ratelimit", "Retry-After"} {
			r.Header.Set(name, said)
		}
	}
	behind, err := identity.Behind("X-Forwarded-For", "192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, got reply) {
		if text := fmt.Sprint(got.header, got.body); strings.Contains(strings.ToLower(text), strings.ToLower(said)) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, c := range refusals {
		got := one(c.handler(t, httplimit.Options{ClientIP: behind, Headers: both}), http.MethodGet, func(r *http.Request) *http.Request {
			fields(r)
			if c.request != nil {
				r = c.request(r)
			}
			return r
		})
		check(c.name, got)
	}
	set := newSet(t, `policies: [{name: api, key: ["header:X-Key"], cost: "header:X-Cost", limits: [1/1h]}]`, policy.Options{})
	h := limit(t, set, httplimit.Options{}, okHandler)
	for _, cost := range []string{"1", "1", "2", said} {
		got := one(h, http.MethodGet, func(r *http.Request) *http.Request {
			fields(r)
			r.Header.Set("X-Cost", cost)
			return r
		})
		check("cost "+cost, got)
		if cost == said {
			if d := got.problem(t); d.Status != 400 || !strings.Contains(d.Detail, "header X-Cost") || !strings.Contains(d.Detail, "accepted: a whole number") {
				t.Errorf("what is wrong is told as %+v", d)
			}
		}
	}
}

// Pitfall H8: what makes no sense is an error of New, and no surprise of the first request.
func TestH8BadOptions(t *testing.T) {
	l, set := newLimiter(t, "1/1h"), newSet(t, yaml, policy.Options{})
	behind, badProxies := identity.Behind("X-Forwarded-For", "not an address")
	if behind != nil || badProxies == nil {
		t.Errorf("proxies that are none: %v, %v", behind, badProxies)
	}
	one := func(*http.Request) int64 { return 1 }
	charge := func(*http.Request, admission.Response) int64 { return 1 }
	for name, opts := range map[string]httplimit.Options{
		"header.Draft11|header.None":              {Headers: header.Draft11 | header.None},
		"header.XRateLimit|header.XRateLimitUnix": {Headers: header.XRateLimit | header.XRateLimitUnix},
		"unknown headers":                         {Headers: 1 << 7},
		"a name with a line's end":                {Name: "a\r\nSet-Cookie: x"},
		"a key that is none":                      {Key: identity.Key{identity.Func("a b", nil)}},
		"an empty key":                            {Key: identity.Key{}},
		"Charge without a name":                   {Charge: charge},
		"Hold without Charge":                     {Hold: time.Second},
		"negative Hold":                           {Charge: charge, Hold: -time.Second},
		"unknown OnStoreError":                    {OnStoreError: 99},
		"Attributes of a limiter":                 {Attributes: map[string]identity.Source{"a": identity.Everyone()}},
	} {
		if mw, err := httplimit.New(l, opts); err == nil || mw != nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, opts := range map[string]httplimit.Options{
		"Name":     {Name: "a"},
		"Key":      {Key: identity.Key{identity.Everyone()}},
		"Override": {Override: func(*http.Request) *weir.Limiter { return l }},
	} {
		if _, err := httplimit.New(set, opts); err == nil {
			t.Errorf("%s is accepted of policies", name)
		}
	}
	if _, err := httplimit.New[*weir.Limiter](nil, httplimit.Options{}); err == nil {
		t.Error("no limiter is accepted")
	}
	if _, err := httplimit.New[*policy.Set](nil, httplimit.Options{Cost: one}); err == nil {
		t.Error("no policies are accepted")
	}
	mw, err := httplimit.New(l, httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil handler is found by the first request")
		}
	}()
	mw(nil)
}

type userKey struct{}

// Pitfall H9: a key of the request's context is what an earlier handler put there, and not what a client says in a field of the same name.
func TestH9ContextIsNotTheHeader(t *testing.T) {
	key := identity.Key{identity.Context("user", userKey{})}
	seen := map[string]bool{}
	h := limit(t, newLimiter(t, "2/1h"), httplimit.Options{Name: "calls", Key: key}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen[r.Header.Get("User")] = true
	}))
	authenticated := func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, "ann")))
	}
	url := serve(t, http.HandlerFunc(authenticated))
	var statuses []int
	for i := range 3 {
		statuses = append(statuses, get(t, url, fmt.Sprint("User: someone", i), fmt.Sprint("X-User: someone", i)).status)
	}
	if !slices.Equal(statuses, []int{200, 200, 429}) || len(seen) != 2 {
		t.Errorf("answers %v to %v", statuses, slices.Collect(maps.Keys(seen)))
	}
}

// Pitfall H10: who rotates tokens that nobody has verified is limited by the address, and takes nothing from who has a good one.
func TestH10RotatingTokens(t *testing.T) {
	secret := []byte("for this test alone, and long enough")
	users, err := bearer.Verified("sub", bearer.Options{Methods: []string{"HS256"}, Key: func(*jwt.Token) (any, error) { return secret, nil }})
	if err != nil {
		t.Fatal(err)
	}
	token := func(user, secret string) string {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return "Authorization: Bearer " + signed
	}
	key := identity.Key{identity.First(users, identity.Peer.Source())}
	url := serve(t, limit(t, newLimiter(t, "3/1h"), httplimit.Options{Key: key}, okHandler))
	var statuses []int
	for i := range 5 {
		statuses = append(statuses, get(t, url, token(fmt.Sprint("user", i), fmt.Sprint("guess", i))).status)
	}
	statuses = append(statuses, get(t, url).status, get(t, url, "Authorization: Bearer "+strings.Repeat("x", 9000)).status)
	if want := []int{200, 200, 200, 429, 429, 429, 429}; !slices.Equal(statuses, want) {
		t.Errorf("who has no good token is answered %v, want %v", statuses, want)
	}
	statuses = nil
	for range 4 {
		statuses = append(statuses, get(t, url, token("ann", string(secret))).status)
	}
	if want := []int{200, 200, 200, 429}; !slices.Equal(statuses, want) {
		t.Errorf("who has one is answered %v, want %v", statuses, want)
	}
}
