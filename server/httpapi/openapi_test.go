package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/weirlimit/weir/server/httpapi"
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

func exchanges() []exchange {
	list := []exchange{
		{"GET", "/healthz", "", "", true, 200},
		{"GET", "/readyz", "", "", true, 200},
		{"GET", "/metrics", "", "", true, 200},
		{"GET", "/openapi.yaml", "", "", true, 200},
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
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
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
	s := newServer(trusting)
	doc, router := description(t, s)
	seen := map[answer]bool{}
	for _, e := range exchanges() {
		op, status := e.check(t, s, router, "")
		seen[answer{op.OperationID, status}] = true
	}
	for _, path := range posts {
		e := exchange{"POST", path, "application/json", `{"key":"k","limit":"2/1h"}`, true, 403}
		op, status := e.check(t, s, router, "https://other.example")
		seen[answer{op.OperationID, status}] = true
	}
	s = newServer(func(o *httpapi.Options) {
		o.Limiters = broken{errors.New("no store")}
		o.Ready = func(context.Context) error { return errors.New("no store") }
	})
	op, status := exchange{"GET", "/readyz", "", "", true, 503}.check(t, s, router, "")
	seen[answer{op.OperationID, status}] = true
	for _, path := range posts {
		e := exchange{"POST", path, "application/json", `{"key":"k","limit":"2/1h"}`, true, 503}
		op, status := e.check(t, s, router, "")
		seen[answer{op.OperationID, status}] = true
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if !seen[answer{op.OperationID, number(status)}] {
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
	for _, route := range newServer().Routes() {
		if !described[route] {
			t.Errorf("%s is served and not described", route)
		}
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
