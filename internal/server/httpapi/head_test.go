package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRequestsRefusedByTheirHead(t *testing.T) {
	const good = `{"key":"k","limit":"1/1s"}`
	request := func(method, path, body string, header ...string) *http.Request {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	tests := []struct {
		name    string
		request *http.Request
		status  int
		field   string
	}{
		{"UnknownPath", request("GET", "/v1/takes", ""), 404, "path"},
		{"Root", request("GET", "/", ""), 404, "path"},
		{"SlashAtTheEnd", request("POST", "/v1/take/", good), 404, "path"},
		{"GetOfTake", request("GET", "/v1/take", ""), 405, "method"},
		{"PostOfHealth", request("POST", "/healthz", ""), 405, "method"},
		{"Multipart", request("POST", "/v1/take", good, "Content-Type", "multipart/form-data; boundary=b"), 415, "Content-Type"},
		{"Latin1", request("POST", "/v1/take", good, "Content-Type", "application/json; charset=latin1"), 415, "Content-Type"},
		{"Compressed", request("POST", "/v1/take", good, "Content-Type", "application/json", "Content-Encoding", "gzip"), 415, "Content-Encoding"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if p := problem(t, send(newServer(), test.request)); p.Status != test.status || p.Field != test.field {
				t.Errorf("got %+v, want %d with field %q", p, test.status, test.field)
			}
		})
	}
}

func TestMethodNotAllowedSaysWhichIs(t *testing.T) {
	for path, want := range map[string]string{"/v1/take": "POST", "/metrics": "GET, HEAD"} {
		res := send(newServers().of(path), httptest.NewRequest(http.MethodPatch, path, nil))
		if got := res.Header.Get("Allow"); got != want {
			t.Errorf("Allow of %s is %q, want %q", path, got, want)
		}
	}
}

func TestAnyPlainTypeIsReadAsJSON(t *testing.T) {
	for _, kind := range []string{
		"", "application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8",
		"application/x-www-form-urlencoded", "text/plain; charset=UTF-8", "application/x-www-form-urlencoded; charset", "/;",
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(`{"key":"k","limit":"1/1s"}`))
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		if res := send(newServer(), r); res.StatusCode != http.StatusOK {
			t.Errorf("content type %q: %d, want 200", kind, res.StatusCode)
		}
	}
}
