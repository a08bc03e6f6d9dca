package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPagesOfOtherOrigins(t *testing.T) {
	tests := []struct {
		name, host, origin, site string
		field                    string // to blame; empty: answered
	}{
		{"Program", "weir.internal:8080", "", "", ""},
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

func TestPagesMayRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil)
	r.Header.Set("Origin", "https://other.example")
	if res := send(newServer(), r); res.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", res.StatusCode)
	}
}
