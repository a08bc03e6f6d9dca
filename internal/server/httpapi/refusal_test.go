package httpapi_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/httpapi"
)

func problem(tb testing.TB, res *http.Response) httpapi.Problem {
	tb.Helper()
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		tb.Errorf("content type is %q, want application/problem+json", got)
	}
	var p httpapi.Problem
	if err := json.Unmarshal([]byte(read(tb, res)), &p); err != nil {
		tb.Fatal(err)
	}
	if p.Status != res.StatusCode || p.Title != http.StatusText(p.Status) || p.Type != "about:blank" {
		tb.Errorf("problem %+v does not fit status %d", p, res.StatusCode)
	}
	return p
}

func TestBodiesRefused(t *testing.T) {
	const good = `"key":"k","limit":"1/1s"`
	tests := []struct{ name, path, body, field, value string }{
		{"Empty", "/v1/take", ``, "body", "not JSON at byte 0"},
		{"Array", "/v1/take", `[]`, "body", "not a JSON object"},
		{"String", "/v1/take", `"key"`, "body", "not a JSON object"},
		{"CutShort", "/v1/take", `{"key":"k"`, "body", "not JSON at byte 10"},
		{"NoValue", "/v1/take", `{"key":}`, "body", "not JSON at byte 8"},
		{"NameIsNoString", "/v1/take", `{1:2}`, "body", "not JSON at byte 2"},
		{"CommaAtTheEnd", "/v1/take", `{` + good + `,}`, "body", "not JSON at byte 27"},
		{"TrailingObject", "/v1/take", `{` + good + `}{}`, "body", "not JSON at byte 27"},
		{"TrailingText", "/v1/take", `{` + good + `}x`, "body", "not JSON at byte 27"},
		{"NotUTF8", "/v1/take", "{\"key\":\"\xff\",\"limit\":\"1/1s\"}", "body", "not Unicode"},
		{"HalfASurrogate", "/v1/take", `{"key":"\ud800","limit":"1/1s"}`, "body", "not Unicode"},
		{"HalvesSwapped", "/v1/take", `{"key":"\udc00\ud800","limit":"1/1s"}`, "body", "not Unicode"},
		{"Unknown", "/v1/take", `{` + good + `,"burst":1}`, "burst", "unknown"},
		{"NoName", "/v1/take", `{"":1}`, `""`, "unknown"},
		{"OtherCase", "/v1/take", `{` + good + `,"Key":"l"}`, "Key", "unknown"},
		{"Twice", "/v1/take", `{` + good + `,"key":"l"}`, "key", "given twice"},
		{"KeyMissing", "/v1/take", `{"limit":"1/1s"}`, "key", "missing"},
		{"KeyNull", "/v1/take", `{"key":null,"limit":"1/1s"}`, "key", "null"},
		{"KeyNumber", "/v1/take", `{"key":7,"limit":"1/1s"}`, "key", "7"},
		{"KeyObject", "/v1/take", `{"key":{},"limit":"1/1s"}`, "key", "an object"},
		{"KeyDeep", "/v1/take", `{"key":` + strings.Repeat(`[`, 9_000) + strings.Repeat(`]`, 9_000) + `}`, "key", "an array"},
		{"KeyTooDeep", "/v1/take", `{"key":` + strings.Repeat(`[`, 60_000), "body", "not JSON at byte 10007"},
		{"LimitMissing", "/v1/take", `{"key":"k"}`, "limit", "missing"},
		{"LimitBool", "/v1/take", `{"key":"k","limit":true}`, "limit", "true"},
		{"LimitCountZero", "/v1/take", `{"key":"k","limit":"0/1s"}`, "limit", "0/1s"},
		{"LimitEmpty", "/v1/take", `{"key":"k","limit":""}`, "limit", ""},
		{"CostNegative", "/v1/take", `{` + good + `,"cost":-1}`, "cost", "-1"},
		{"CostFraction", "/v1/take", `{` + good + `,"cost":1.5}`, "cost", "1.5"},
		{"CostExponent", "/v1/take", `{` + good + `,"cost":1e3}`, "cost", "1e3"},
		{"CostTooLarge", "/v1/take", `{` + good + `,"cost":9223372036854775808}`, "cost", "9223372036854775808"},
		{"CostString", "/v1/take", `{` + good + `,"cost":"1"}`, "cost", `"1"`},
		{"CostOfAPeek", "/v1/peek", `{` + good + `,"cost":1}`, "cost", "unknown"},
		{"CostOfAReset", "/v1/reset", `{` + good + `,"cost":1}`, "cost", "unknown"},
		{"RefundNegative", "/v1/refund", `{` + good + `,"cost":-1}`, "cost", "-1"},
		{"TimeOfTheClients", "/v1/take", `{` + good + `,"at_us":1}`, "at_us", "not trusted"},
	}
	s := newServer()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, test.path, strings.NewReader(test.body))
			r.Header.Set("Content-Type", "application/json")
			p := problem(t, send(s, r))
			if p.Status != http.StatusBadRequest || p.Field != test.field || p.Value != test.value || p.Accepted == "" {
				t.Errorf("got %+v, want a 400 with field %q and value %q", p, test.field, test.value)
			}
			if !strings.Contains(p.Detail, p.Field) || !strings.Contains(p.Detail, "accepted: ") {
				t.Errorf("detail %q does not say what is wrong", p.Detail)
			}
		})
	}
}

func TestTimesRefused(t *testing.T) {
	s := newServer(trusting)
	for _, at := range []string{"9223372036854775807", "-9223372036854775808", "4e9", `"now"`} {
		status, body := post(t, s, "/v1/take", `{"key":"k","limit":"1/1s","at_us":`+at+`}`)
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"at_us"`) {
			t.Errorf("at_us %s: %d %s, want a 400 that names it", at, status, body)
		}
	}
}

func TestPairedSurrogatesAndEscapesAreKept(t *testing.T) {
	s := newServer()
	for _, key := range []string{`\ud83d\ude00`, `\\ud800`, `\u00e9`, `\u0000`, ``} {
		if status, body := post(t, s, "/v1/take", `{"key":"`+key+`","limit":"1/1s"}`); status != http.StatusOK {
			t.Errorf("key %s: %d %s, want 200", key, status, body)
		}
	}
	_, raw := post(t, s, "/v1/take", `{"key":"😀","limit":"1/1h"}`)
	_, escaped := post(t, s, "/v1/take", `{"key":"\ud83d\ude00","limit":"1/1h"}`)
	if !strings.HasPrefix(raw, `{"allowed":true`) || !strings.HasPrefix(escaped, `{"allowed":false`) {
		t.Errorf("one key in two spellings got %s and %s, want one budget", raw, escaped)
	}
}

func TestBodySizes(t *testing.T) {
	body := func(size int) string {
		head, tail := `{"key":"`, `","limit":"1/1s"}`
		return head + strings.Repeat("k", size-len(head)-len(tail)) + tail
	}
	s := newServer()
	if status, got := post(t, s, "/v1/take", body(httpapi.MaxBody)); status != http.StatusOK {
		t.Errorf("largest body: %d %s, want 200", status, got)
	}
	if status, _ := post(t, s, "/v1/take", body(httpapi.MaxBody+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("body one byte larger: %d, want 413", status)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(body(httpapi.MaxBody+1)))
	r.ContentLength = -1 // chunked: the size shows only as it comes
	r.Header.Set("Content-Type", "application/json")
	if p := problem(t, send(s, r)); p.Status != http.StatusRequestEntityTooLarge || p.Field != "body" {
		t.Errorf("chunked body one byte larger: %+v, want 413", p)
	}
}

func TestStoresErrorIsNotShown(t *testing.T) {
	s := newServer(func(o *httpapi.Options) { o.Limiters = broken(errors.New("dial tcp 10.1.2.3: secret")) })
	status, body := post(t, s, "/v1/take", `{"key":"k","limit":"1/1s"}`)
	if status != http.StatusServiceUnavailable || strings.Contains(body, "secret") {
		t.Errorf("got %d %s, want 503 and nothing of the cause", status, body)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	status, body := post(t, newServer(), "/v1/take", `{"key":"k","limit":"`+strings.Repeat("é", 20_000)+`"}`)
	if status != http.StatusBadRequest || len(body) > 1000 {
		t.Errorf("got %d and %d bytes, want a short 400", status, len(body))
	}
}
