package policy_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store/redis"
)

func TestMain(m *testing.M) {
	m.Run()
	testengine.Close()
}

var redisServer = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Redis(t) })

func openRedis(t *testing.T, server *testengine.Server, prefix string) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), server.URL(), redis.Options{Prefix: prefix, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// S18 limit change, and S5, on an engine: what was used under one limit, plan and process is used under the next.
func TestS18OnRedis(t *testing.T) {
	clients := staticClients{}
	text := func(limit string) string {
		return `policies: [{name: a, key: "attribute:key", limits: [` + limit + `], plans: {gold: [fixed-window 50/24h]}}]`
	}
	o := policy.Options{Store: openRedis(t, redisServer(t), "s18"), Clients: clients}
	for range 10 {
		check(t, newSet(t, text("fixed-window 10/24h"), o), request("GET /", "key=k"))
	}
	for _, step := range []struct {
		limit string
		left  int64
	}{{"fixed-window 10/24h", 0}, {"fixed-window 30/24h", 20}, {"sliding-log 12/24h", 2}, {"fixed-window 5/24h", 0}, {"fixed-window 30/24h", 20}} {
		zero := int64(0)
		r := request("GET /", "key=k")
		r.Cost = &zero
		if got := remaining(check(t, newSet(t, text(step.limit), o), r)); !slices.Equal(got, []int64{step.left}) {
			t.Errorf("under %s there remain %v, want %d", step.limit, got, step.left)
		}
	}
	clients["k"] = plan("gold")
	wantRemaining(t, check(t, newSet(t, text("fixed-window 10/24h"), o), request("GET /", "key=k")), true, 39)
}

// Several limits of one client, leases and reservations, on an engine, with a token that another process settles.
func TestTokensOnRedis(t *testing.T) {
	keys := [][]byte{bytes.Repeat([]byte("k"), policy.MinTokenKey)}
	s := newSet(t, holdYAML, policy.Options{Store: openRedis(t, redisServer(t), "tokens"), TokenKeys: keys})
	other := newSet(t, holdYAML, policy.Options{Store: openRedis(t, redisServer(t), "tokens"), TokenKeys: keys})
	r := request("GET /", "tokens=300")
	r.Hold = time.Hour
	d := check(t, s, r)
	wantRemaining(t, d, true, 9, 700, 2, 200)
	token, err := other.Renew(t.Context(), d.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context(), token, 50); err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	r = request("GET /")
	r.Cost = &zero
	wantRemaining(t, check(t, s, r), true, 9, 950, 3, 450)
}

// While the store is away each policy does as it says.
func TestOnStoreError(t *testing.T) {
	server := testengine.Redis(t)
	s := newSet(t, `
policies:
  - {name: deny, match: {path: [/deny, /both]}, key: client_ip, limits: [fixed-window 10/24h]}
  - {name: allow, match: {path: /allow}, key: client_ip, limits: [fixed-window 10/24h], on_store_error: allow}
  - {name: local, match: {path: [/local, /both]}, key: client_ip, limits: [fixed-window 2/24h, concurrent 5 lease=1h], on_store_error: local, candidate: [fixed-window 1/24h]}
`, policy.Options{Store: openRedis(t, server, "failing")})
	for _, path := range []string{"/deny", "/allow", "/local"} {
		if d := check(t, s, request("GET "+path)); !d.Allowed || d.Err != nil {
			t.Fatalf("%s is %+v", path, d)
		}
	}
	server.Stop(t)
	d := check(t, s, request("GET /deny"))
	if d.Allowed || d.Err == nil || d.RetryAfter != time.Second || !slices.Equal(d.Denied, []string{"deny"}) {
		t.Errorf("deny: %+v", d)
	}
	if d = check(t, s, request("GET /allow")); !d.Allowed || d.Err == nil || d.Limit != 10 {
		t.Errorf("allow: %+v", d)
	}
	if d = check(t, s, request("GET /both")); d.Allowed || d.Err == nil || !d.Each[1].Local || d.Each[1].Remaining != 2 {
		t.Errorf("deny wins over local, which is not charged: %+v", d)
	}
	var tokens []string
	for _, want := range []bool{true, true, false} {
		d = check(t, s, request("GET /local"))
		if d.Allowed != want || d.Err == nil || len(d.Each) != 2 || !d.Each[0].Local || (d.Token != "") != want {
			t.Errorf("local: %+v", d)
		}
		tokens = append(tokens, d.Token)
	}
	if err := s.Release(t.Context(), tokens[0]); err != nil { // of this process
		t.Errorf("a local lease: %v", err)
	}
	server.Start(t)
	d = check(t, s, request("GET /local"))
	for d.Err != nil { // until a probe has found the server
		time.Sleep(10 * time.Millisecond)
		d = check(t, s, request("GET /local"))
	}
	if !d.Allowed || d.Err != nil || d.Each[0].Local {
		t.Errorf("when the store is back: %+v", d)
	}
	for _, c := range s.Stats() {
		if c.Policy == "deny" && c != (policy.Stats{Policy: "deny", Checked: 3, Allowed: 1, Denied: 2, Failed: 2}) {
			t.Errorf("counts %+v", c)
		}
	}
}

// What is not enforced is counted as failed, and what Explain says is what the policies then do.
func TestShadowsAndExplanationsWhileTheStoreIsAway(t *testing.T) {
	server := testengine.Redis(t)
	s := newSet(t, `
policies:
  - {name: shadow, match: {path: /shadow}, key: client_ip, limits: [fixed-window 1/24h], mode: shadow}
  - {name: deny, match: {path: /deny}, key: client_ip, limits: [fixed-window 10/24h]}
`, policy.Options{Store: openRedis(t, server, "failing")})
	server.Stop(t)
	if d := check(t, s, request("GET /shadow")); !d.Allowed || d.Err != nil || len(d.Each) != 0 {
		t.Errorf("shadow: %+v", d)
	}
	if got := s.Stats()[0]; got != (policy.Stats{Policy: "shadow", Checked: 1, Failed: 1}) {
		t.Errorf("counts %+v", got)
	}
	x, err := s.Explain(t.Context(), request("GET /deny"))
	if err != nil || x.Allowed || !x.Policies[1].Limits[0].Failed {
		t.Errorf("%+v, error %v", x, err)
	}
}
