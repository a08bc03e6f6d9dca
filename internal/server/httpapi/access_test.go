package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/store/memory"
)

// hashed is the hash of the secret "secret", which all users of the tests have.
var hashed = sync.OnceValue(func() string {
	h, err := access.Hash("secret")
	if err != nil {
		panic(err)
	}
	return h
})

// withUsers sets users with lines such as "alice +take ~*".
func withUsers(t *testing.T, lines ...string) func(*httpapi.Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	var text strings.Builder
	for _, line := range lines {
		name, words, _ := strings.Cut(line, " ")
		text.WriteString("user " + name + " on " + hashed() + " " + words + "\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.Open(path, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *httpapi.Options) { o.Users = users }
}

func basic(name, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+secret))
}

func sendAs(s *httpapi.Server, authorization, method, path, body string) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return send(s, r)
}

func TestAuthentication(t *testing.T) {
	users := withUsers(t, "alice +take ~*")
	s := newServers(users)
	for _, c := range []struct {
		authorization string
		want          int
	}{
		{basic("alice", "secret"), 200}, {"Bearer alice~secret", 200}, {"bearer alice~secret", 200},
		{"", 401}, {basic("alice", "wrong"), 401}, {basic("nobody", "secret"), 401}, {basic("", ""), 401}, {"Basic x", 401}, {"Bearer alice", 401},
		{"Bearer alice:secret", 401}, {"Digest alice", 401}, {basic("alice", strings.Repeat("x", 5000)), 401},
	} {
		res := sendAs(s.data, c.authorization, "POST", "/v1/take", `{"key":"k","limit":"1000/1m"}`)
		if res.StatusCode != c.want {
			t.Errorf("%.20q: status %d, want %d", c.authorization, res.StatusCode, c.want)
		}
		if c.want == 401 && (len(res.Header["Www-Authenticate"]) != 2 || res.Header.Get("Connection") != "close" || !strings.Contains(read(t, res), `"status":401`)) {
			t.Errorf("%.20q: header %v", c.authorization, res.Header)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{"key":"k","limit":"1000/1m"}`))
	r.Header["Authorization"] = []string{basic("alice", "secret"), basic("alice", "wrong")}
	if res := send(s.data, r); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("two fields: status %d", res.StatusCode)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/openapi.yaml": 401, "/nothing": 401, "/v1/check": 401} {
		for _, h := range []*httpapi.Server{s.data, s.admin} {
			if res := sendAs(h, "", "GET", path, ""); res.StatusCode != want {
				t.Errorf("%s without a user: status %d, want %d", path, res.StatusCode, want)
			}
		}
	}
	for path, want := range map[string]int{"/openapi.yaml": 200, "/nothing": 404} {
		if res := sendAs(s.data, basic("alice", "secret"), "GET", path, ""); res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, want)
		}
	}
}

// After many failures an address has to wait, and says so.
func TestFailedLoginsHaveToWait(t *testing.T) {
	users := withUsers(t, "alice +admin")
	s := newServer(users)
	for i := range 100 {
		res := sendAs(s, basic("alice", strconv.Itoa(i)), "POST", "/v1/take", "")
		if res.StatusCode == http.StatusTooManyRequests {
			if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || n < 1 || n > 60 {
				t.Errorf("Retry-After is %q", res.Header.Get("Retry-After"))
			}
			return
		}
	}
	t.Error("100 failures without a limit")
}

// Each route needs a right, except a few.
func TestRightsOfRoutes(t *testing.T) {
	users := withUsers(t, "all +@all ~*", "taker +take ~name:a* ~name: ~key:k", "refunder +refund ~name:a ~key:k", "checker +check ~policy:login ~key:*", "admin +admin")
	s := newServers(users, ruled(t, memory.New(memory.Options{})))
	for _, h := range []*httpapi.Server{s.data, s.admin} {
		public, anyUser := h.Open()
		if strings.Join(public, " ") != "/healthz /readyz" || strings.Join(anyUser, " ") != "/openapi.yaml" {
			t.Errorf("without a right are %v for everybody, %v for any user", public, anyUser)
		}
	}
	const good, otherName, otherKey = `{"key":"k","limit":"9/1h","name":"a"}`, `{"key":"k","limit":"9/1h","name":"b"}`, `{"key":"l","limit":"9/1h","name":"a"}`
	for _, c := range []struct {
		user, path, body string
		want             int
	}{
		{"taker", "/v1/take", good, 200}, {"taker", "/v1/take-up-to", good, 200}, {"taker", "/v1/peek", good, 200}, {"taker", "/v1/take", `{"key":"k","limit":"9/1h"}`, 200},
		{"taker", "/v1/take", otherName, 403}, {"taker", "/v1/take", otherKey, 403}, {"taker", "/v1/peek", otherKey, 403}, {"taker", "/v1/refund", good, 403}, {"taker", "/v1/reset", good, 403},
		{"taker", "/v1/check", `{}`, 403}, {"taker", "/v1/cancel", `{"token":"x"}`, 403}, {"taker", "/v1/explain", `{}`, 403}, {"taker", "/metrics", "", 403}, {"taker", "/v1/status", "", 403},
		{"taker", "/debug/pprof/heap", "", 403},
		{"refunder", "/v1/refund", good, 200}, {"refunder", "/v1/reset", good, 200}, {"refunder", "/v1/reset", otherKey, 403}, {"refunder", "/v1/take", good, 403},
		{"checker", "/v1/check", `{"path":"/elsewhere"}`, 200}, {"checker", "/v1/check", `{"method":"POST","path":"/login","client_ip":"192.0.2.7"}`, 200},
		{"checker", "/v1/check", `{"path":"/work"}`, 403}, {"checker", "/v1/cancel", `{"token":"x"}`, 400}, {"checker", "/v1/take", good, 403}, {"checker", "/v1/explain", `{}`, 403},
		{"admin", "/metrics", "", 200}, {"admin", "/v1/status", "", 200}, {"admin", "/v1/explain", `{"path":"/work"}`, 200}, {"admin", "/debug/pprof/heap", "", 200}, {"admin", "/v1/take", good, 403},
		{"all", "/v1/take", otherKey, 200}, {"all", "/v1/check", `{"path":"/work"}`, 200}, {"all", "/metrics", "", 200},
	} {
		method := "POST"
		if c.body == "" {
			method = "GET"
		}
		res := sendAs(s.of(c.path), basic(c.user, "secret"), method, c.path, c.body)
		body := read(t, res)
		if res.StatusCode != c.want || c.want == 403 && !strings.Contains(body, "the user does not have the right") {
			t.Errorf("%s: %s %s: status %d, want %d: %.200s", c.user, c.path, c.body, res.StatusCode, c.want, body)
		}
	}
}
