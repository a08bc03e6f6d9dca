package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/store/memory"
)

// description reads the description that a server hands out.
func description(tb testing.TB, s *httpapi.Server) (*openapi3.T, routers.Router) {
	tb.Helper()
	body := read(tb, send(s, httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil)))
	doc, err := openapi3.NewLoader().LoadFromData([]byte(body))
	if err != nil {
		tb.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		tb.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return doc, router
}

// An exchange is a request, whether the description should find it right, and the status it should get. The description
// promises JSON that says so; the server takes more.
type exchange struct {
	method, path, kind, body string
	valid                    bool
	status                   int
}

var posts = []string{"/v1/take", "/v1/take-up-to", "/v1/peek", "/v1/refund", "/v1/reset"}

// checks are the paths that ask policies, with bodies that they answer with 200.
var checks = map[string]string{
	"/v1/check": `{"method":"POST","path":"/login","client_ip":"192.0.2.7"}`, "/v1/explain": `{"path":"/work","headers":{"X":["a","b"]}}`,
}

// bodies are those that all paths of POST but those of settlements answer with 200.
func bodies() map[string]string {
	all := maps.Clone(checks)
	for _, path := range posts {
		all[path] = `{"key":"k","limit":"2/1h"}`
	}
	return all
}

// settlements are the paths that settle tokens, with what their bodies have besides.
var settlements = map[string]string{"/v1/release": "", "/v1/commit": `,"cost":1`, "/v1/cancel": "", "/v1/renew": ""}

func exchanges() []exchange {
	list := []exchange{
		{"GET", "/healthz", "", "", true, 200},
		{"GET", "/readyz", "", "", true, 200},
		{"GET", "/metrics", "", "", true, 200},
		{"GET", "/openapi.yaml", "", "", true, 200},
		{"GET", "/v1/status", "", "", true, 200},
	}
	for _, path := range []string{"", "allocs", "goroutine?debug=2", "heap", "profile?seconds=1", "trace?seconds=1"} {
		list = append(list, exchange{"GET", "/debug/pprof/" + path, "", "", true, 200})
	}
	for _, path := range profilePaths {
		list = append(list, exchange{"GET", path + "?debug=3&seconds=61", "", "", false, 400})
	}
	const json = "application/json"
	large := `{"limit":"1/1s","key":"` + strings.Repeat("k", httpapi.MaxBody) + `"}`
	for _, op := range posts {
		costs := op == "/v1/take" || op == "/v1/take-up-to" || op == "/v1/refund"
		list = append(list,
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h"}`, true, 200},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","at_us":1735689600000000}`, true, 200},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","cost":2}`, costs, statusIf(costs)},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","cost":3}`, costs, statusIf(costs)},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","cost":-1}`, false, 400},
			exchange{"POST", op, json, `{"key":"k","limit":"none"}`, true, 400},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","name":"login"}`, true, 200},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","name":null}`, false, 400},
			exchange{"POST", op, json, `{"key":"k","limit":"` + strings.Repeat(" ", 201) + `"}`, false, 400},
			exchange{"POST", op, json, `{"key":"k"}`, false, 400},
			exchange{"POST", op, json, `{"limit":"2/1h"}`, false, 400},
			exchange{"POST", op, json, `{"key":1,"limit":"2/1h"}`, false, 400},
			exchange{"POST", op, json, `{"key":"k","limit":"2/1h","more":1}`, false, 400},
			exchange{"POST", op, json, large, true, 413},
			exchange{"POST", op, "application/x-www-form-urlencoded", `{"key":"k","limit":"2/1h"}`, false, 200},
			exchange{"POST", op, "multipart/form-data", `{"key":"k","limit":"2/1h"}`, false, 415},
		)
	}
	return append(list, policyExchanges()...)
}

var profilePaths = []string{"/debug/pprof/allocs", "/debug/pprof/goroutine", "/debug/pprof/heap", "/debug/pprof/profile", "/debug/pprof/trace"}

// servers are the two kinds of a server, with equal options.
type servers struct{ data, admin *httpapi.Server }

func newServers(change ...func(*httpapi.Options)) servers {
	return servers{newServer(change...), newServer(append(change, admin)...)}
}

// of returns the server of a path.
func (s servers) of(path string) *httpapi.Server {
	if path, _, _ = strings.Cut(path, "?"); slices.Contains(s.admin.Routes(), "GET "+path) || path == "/v1/explain" {
		return s.admin
	}
	return s.data
}

func policyExchanges() (list []exchange) {
	const json = "application/json"
	for path, good := range checks {
		for _, body := range []string{
			good, `{}`, `{"path":"/elsewhere"}`, `{"path":"*"}`, `{"path":"/login","method":"post"}`, `{"path":"/plan","headers":{"X-Key":"free"}}`, `{"cost":0,"hold_ms":0}`,
			`{"method":"POST","host":"h:1","path":"/work","query":"a=1","headers":{"X-Cost":["1"]},"client_ip":"2001:db8::1","attributes":{"a":"b"},"cost":9007199254740992,"hold_ms":1}`,
		} {
			list = append(list, exchange{"POST", path, json, body, true, 200})
		}
		for _, body := range []string{
			`{"path":"login"}`, `{"path":"/login?x"}`, `{"path":1}`, `{"cost":-1}`, `{"cost":9007199254740993}`, `{"hold_ms":86400001}`, `{"headers":[]}`, `{"headers":{"X":[]}}`,
			`{"headers":{"X Y":"z"}}`, `{"headers":{"X":1}}`, `{"attributes":{"a":1}}`, `{"client_ip":7}`, `{"key":"k"}`,
		} {
			list = append(list, exchange{"POST", path, json, body, false, 400})
		}
		list = append(list,
			exchange{"POST", path, json, `{"client_ip":"nobody"}`, true, 400},
			exchange{"POST", path, json, `{"path":"/paid","headers":{"X-Cost":"much"}}`, true, 400}, // the policy's cost
			exchange{"POST", path, json, `{"host":"` + strings.Repeat("h", httpapi.MaxBody) + `"}`, true, 413},
			exchange{"POST", path, "multipart/form-data", good, false, 415},
		)
	}
	for path, more := range settlements {
		list = append(list,
			exchange{"POST", path, json, `{"token":""` + more + `}`, true, 400},
			exchange{"POST", path, json, `{"token":"x"` + more + `}`, true, 400},
			exchange{"POST", path, json, `{"token":1` + more + `}`, false, 400},
			exchange{"POST", path, json, `{"token":"x","cost":-1}`, false, 400},
			exchange{"POST", path, json, `{"cost":1}`, false, 400},
			exchange{"POST", path, json, `{"token":"` + strings.Repeat("t", httpapi.MaxBody) + `"` + more + `}`, true, 413},
			exchange{"POST", path, "multipart/form-data", `{}`, false, 415},
		)
	}
	return list
}

func statusIf(ok bool) int {
	if ok {
		return http.StatusOK
	}
	return http.StatusBadRequest
}

// check sends the exchange, from a page of this origin if there is one, and holds both sides against the description. It
// returns the operation and the status.
func (e exchange) check(t *testing.T, s *httpapi.Server, router routers.Router, origin string) (*openapi3.Operation, int) {
	t.Helper()
	newRequest := func() *http.Request {
		r := httptest.NewRequest(e.method, e.path, strings.NewReader(e.body))
		r.Header.Set("Content-Type", e.kind)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		return r
	}
	r := newRequest()
	route, params, err := router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s is not described: %v", e.method, e.path, err)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); (err == nil) != e.valid {
		t.Errorf("%s %s %.80s: the description says %v, want valid: %v", e.method, e.path, e.body, err, e.valid)
	}
	res := send(s, newRequest())
	body := read(t, res)
	if res.StatusCode != e.status {
		t.Errorf("%s %s %.80s: %d %s, want %d", e.method, e.path, e.body, res.StatusCode, body, e.status)
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: res.StatusCode, Header: res.Header,
		Body: io.NopCloser(bytes.NewBufferString(body)), Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("%s %s %.80s: answer %d %s does not fit: %v", e.method, e.path, e.body, res.StatusCode, body, err)
	}
	return route.Operation, res.StatusCode
}

func TestDescriptionFitsTheServer(t *testing.T) {
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	type answer struct {
		operation string
		status    int
	}
	s := newServers(trusting, ruled(t, nil))
	doc, router := description(t, s.data)
	seen := map[answer]bool{}
	look := func(s servers, e exchange, origin string) {
		op, status := e.check(t, s.of(e.path), router, origin)
		seen[answer{op.OperationID, status}] = true
	}
	for _, e := range exchanges() {
		look(s, e, "")
	}
	for path, body := range bodies() {
		look(s, exchange{"POST", path, "application/json", body, true, 403}, "https://other.example")
	}
	for path, more := range settlements {
		look(s, exchange{"POST", path, "application/json", `{"token":"t"` + more + `}`, true, 403}, "https://other.example")
		for _, e := range settling(t, s.data, path, more) {
			look(s, e, "")
		}
	}
	for path := range checks {
		look(newServers(), exchange{"POST", path, "application/json", `{}`, true, 404}, "")
	}
	for path, more := range settlements {
		look(newServers(), exchange{"POST", path, "application/json", `{"token":"t"` + more + `}`, true, 404}, "")
	}
	f := &failing{Store: memory.New(memory.Options{})}
	s = newServers(ruled(t, f), func(o *httpapi.Options) {
		o.Limiters, o.Timeout = broken(errors.New("no store")), 1 // a nanosecond, which is over
		o.Ready = func(context.Context) error { return errors.New("no store") }
	})
	look(s, exchange{"GET", "/readyz", "", "", true, 503}, "")
	for path, body := range bodies() {
		look(s, exchange{"POST", path, "application/json", body, true, 503}, "")
	}
	for path, more := range settlements {
		f := &failing{Store: memory.New(memory.Options{})}
		s = newServers(ruled(t, f))
		body := `{"token":"` + tokenOf(t, s.data, `{"path":"/work"}`) + `"` + more + `}`
		f.err = errors.New("no store")
		look(s, exchange{"POST", path, "application/json", body, true, 503}, "")
	}
	for _, path := range append([]string{"/healthz", "/readyz", "/metrics", "/openapi.yaml", "/v1/status", "/debug/pprof/"}, profilePaths...) {
		look(newServers(func(o *httpapi.Options) { o.Hosts = nil }), exchange{"GET", path, "", "", true, 403}, "")
	}
	users := withUsers(t, "alice +@all ~*")
	for _, path := range append([]string{"/metrics", "/openapi.yaml", "/v1/status", "/debug/pprof/"}, profilePaths...) {
		look(newServers(users), exchange{"GET", path, "", "", true, 401}, "")
	}
	for path, body := range bodies() {
		look(newServers(users), exchange{"POST", path, "application/json", body, true, 401}, "")
	}
	for path, more := range settlements {
		look(newServers(users), exchange{"POST", path, "application/json", `{"token":"t"` + more + `}`, true, 401}, "")
	}
	look(newServers(warned), exchange{"GET", "/v1/status", "", "", true, 200}, "")
	look(newServers(warned), exchange{"GET", "/readyz", "", "", true, 200}, "")
	for _, path := range profilePaths {
		leave := s.admin.Occupy(path)
		look(s, exchange{"GET", path, "", "", true, 503}, "")
		leave()
	}
	everyStatus(t, doc, func(id string, status int) bool { return seen[answer{id, status}] })
}

// everyStatus requires that a test got each described status of each operation.
func everyStatus(t *testing.T, doc *openapi3.T, seen func(operation string, status int) bool) {
	t.Helper()
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if status == "429" { // one for all: TestFailedLoginsHaveToWait
					continue
				}
				if !seen(op.OperationID, number(status)) {
					t.Errorf("%s %s: no test got the described status %s", method, path, status)
				}
			}
		}
	}
}

func TestEveryRouteIsDescribed(t *testing.T) {
	doc, _ := description(t, newServer())
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	s := newServers()
	for _, route := range slices.Concat(s.data.Routes(), s.admin.Routes()) {
		if !described[route] {
			t.Errorf("%s is served and not described", route)
		}
	}
	for _, route := range slices.Concat(s.data.Routes(), s.admin.Routes()) {
		delete(described, route)
	}
	for route := range described {
		t.Errorf("%s is described and not served", route)
	}
}

func number(status string) int {
	n, _ := strconv.Atoi(status)
	return n
}
