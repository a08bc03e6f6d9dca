package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/policy"
)

// byPolicies returns a handler behind policies, and the number of its calls.
func byPolicies(t *testing.T, text, pattern string) (h http.Handler, runs *int) {
	t.Helper()
	c, err := policy.Parse([]byte(text), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.New(c, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := httplimit.New(s, httplimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runs = new(int)
	mux := http.NewServeMux()
	mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { *runs++ })
	return m(mux), runs
}

// The mux of net/http answers HEAD by the handler of GET: it runs no more often than the limit of
// GET admits.
func TestHeadThroughTheMux(t *testing.T) {
	h, runs := byPolicies(t, "policies: [{name: a, match: {method: GET, path: /report}, key: all, limits: [2/24h]}]", "GET /report")
	var statuses []int
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodHead, http.MethodGet} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/report", nil))
		statuses = append(statuses, w.Code)
	}
	if *runs != 2 || !slices.Equal(statuses, []int{200, 200, 429, 429}) {
		t.Errorf("the handler ran %d times, want 2; the statuses are %v", *runs, statuses)
	}
}

// A request too long for policies is refused, and not admitted as a request that matches
// nothing.
func TestRequestsTooLongForPolicies(t *testing.T) {
	h, runs := byPolicies(t, `policies: [{name: a, match: {path: "regex:/(a|b)*c", query: {user: "*"}}, key: "query:user", limits: [9/1h]}, {name: b, match: {query: {user: "*"}}, key: all, limits: [9/1h]}]`, "/")
	for target, want := range map[string]int{
		"/c?user=1": 200,
		"/" + strings.Repeat("a", 1<<19) + "c?user=1":    400,
		"/c?" + strings.Repeat("x=1&", 1<<18) + "user=1": 400,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if w.Code != want {
			t.Errorf("%.20s… of %d bytes: %d %s", target, len(target), w.Code, w.Body)
		}
		if want == 400 && !strings.Contains(w.Body.String(), "accepted: at most ") {
			t.Errorf("%.20s…: %s", target, w.Body)
		}
	}
	if *runs != 1 {
		t.Errorf("the handler ran %d times, want 1", *runs)
	}
}
