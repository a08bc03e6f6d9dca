package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/httpapi"
)

// After DNS rebinding a page of a foreign site sends no Origin with a GET. Its name is in the Host.
func TestHosts(t *testing.T) {
	hosts := func(o *httpapi.Options) { o.Hosts = []string{"weir.example.net", "*.corp.example"} }
	s := newServers(hosts)
	for host, ok := range map[string]bool{
		"127.0.0.1:8080": true, "10.1.2.3": true, "[::1]:8080": true, "[2001:db8::1]": true, "LocalHost:8080": true, "localhost.": true, "": true,
		"weir": true, "weir:8080": true, "weir.internal:8080": true, "weir.default.svc:8080": true, "weir.default.svc.cluster.local": true, "api.localhost": true,
		"weir.example.net": true, "WEIR.example.net.:8080": true, "a.b.corp.example": true,
		"other.example:8080": false, "weir.example.net.other.example": false, "corp.example": false, "xcorp.example": false, "evil.local": false, "weir.dev": false,
		"127.0.0.1.other.example": false, "localhost.other.example": false, "127.0.0.1:80:80": false, "1.2.3": false,
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE"} {
			for _, path := range []string{"/v1/status", "/v1/take", "/healthz", "/metrics", "/nowhere"} {
				r := httptest.NewRequest(method, path, strings.NewReader(`{"key":"k","limit":"1/1s"}`))
				r.Host = host
				res := send(s.of(path), r)
				if refused := res.StatusCode == http.StatusForbidden; refused == ok {
					t.Errorf("%s %s under the Host %q: %d", method, path, host, res.StatusCode)
				}
				if p := (httpapi.Problem{}); !ok && method != "HEAD" && (json.NewDecoder(res.Body).Decode(&p) != nil || p.Field != "Host" || !strings.Contains(p.Accepted, "--http-host")) {
					t.Errorf("%s %s under the Host %q: %+v", method, path, host, p)
				}
			}
		}
	}
}

// Pages of foreign origins must not read a reply, guess its type, or keep it.
func TestHeadersOfReplies(t *testing.T) {
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "/v1/status", nil), httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRequest(http.MethodGet, "/healthz", nil),
		httptest.NewRequest(http.MethodGet, "/nowhere", nil), httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{"key":"k","limit":"1/1s"}`)),
		httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{`)), httptest.NewRequest(http.MethodOptions, "/v1/take", nil),
	} {
		r.Header.Set("Access-Control-Request-Method", "POST")
		h := send(newServers().of(r.URL.Path), r).Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, h)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %s: %s", r.Method, r.URL.Path, name)
			}
		}
	}
}

func TestPagesOfOtherOrigins(t *testing.T) {
	tests := []struct {
		name, host, origin, site string
		field                    string // to blame; empty: answered
	}{
		{"Program", "weir.internal:8080", "", "", ""},
		{"ProgramOfForeignName", "other.example:8080", "", "", "Host"},
		{"OwnPage", "127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", ""},
		{"OwnPageWithoutPort", "127.0.0.1", "http://127.0.0.1", "", ""},
		{"OwnPageByIPv6", "[::1]:8080", "http://[::1]:8080", "", ""},
		{"OwnPageByLocalhost", "LocalHost:8080", "http://LocalHost:8080", "", ""},
		{"Typed", "127.0.0.1:8080", "", "none", ""},
		{"OtherSite", "127.0.0.1:8080", "https://other.example", "cross-site", "Origin"},
		{"OtherSiteOfAnOldBrowser", "127.0.0.1:8080", "https://other.example", "", "Origin"},
		{"OtherSiteHidesItsOrigin", "127.0.0.1:8080", "", "cross-site", "Origin"},
		{"Sandbox", "127.0.0.1:8080", "null", "", "Origin"},
		{"OtherPort", "127.0.0.1:8080", "http://127.0.0.1:3000", "same-site", "Origin"},
		{"OtherPortOfAnOldBrowser", "127.0.0.1:8080", "http://127.0.0.1:3000", "", "Origin"},
		{"OwnPageByLocalName", "weir:8080", "http://weir:8080", "same-origin", ""},
		{"NameThatNowLeadsHere", "other.example:8080", "http://other.example:8080", "", "Host"},
		{"NameThatNowLeadsHereSecurely", "other.example:8080", "https://other.example:8080", "same-origin", "Host"},
		{"NameLikeAnAddress", "127.0.0.1.other.example", "http://127.0.0.1.other.example", "", "Host"},
		{"NameLikeLocalhost", "localhost.other.example", "http://localhost.other.example", "", "Host"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{"key":"k","limit":"1/1s"}`))
			r.Host = test.host
			for name, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			res := send(newServer(), r)
			if test.field == "" {
				if res.StatusCode != http.StatusOK {
					t.Errorf("got %d %s, want 200", res.StatusCode, read(t, res))
				}
				return
			}
			if p := problem(t, res); p.Status != http.StatusForbidden || p.Field != test.field {
				t.Errorf("got %+v, want a 403 with field %q", p, test.field)
			}
		})
	}
}

func TestPageThatIsRefusedTakesNothing(t *testing.T) {
	s := newServer()
	r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{"key":"k","limit":"1/1h"}`))
	r.Header.Set("Origin", "https://other.example")
	problem(t, send(s, r))
	if _, got := post(t, s, "/v1/take", `{"key":"k","limit":"1/1h"}`); !strings.HasPrefix(got, `{"allowed":true`) {
		t.Errorf("a take after one refused answers %s, want it admitted", got)
	}
}

// A browser lets no page of a foreign origin read this: the reply has no field of CORS.
func TestPagesMayRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil)
	r.Header.Set("Origin", "https://other.example")
	if res := send(newServer(), r); res.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", res.StatusCode)
	}
}
