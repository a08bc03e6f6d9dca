package httplimit_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/policy"
)

// noon is when it is in tests that look at times.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// newLimiter returns a limiter for which time stands still.
func newLimiter(t testing.TB, limit string, opts ...weir.Option) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(limit), append([]weir.Option{weir.WithClock(noon)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newSet(t testing.TB, text string, opts policy.Options) *policy.Set {
	t.Helper()
	config, err := policy.Parse([]byte(text), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func limit[L admission.Limits](t testing.TB, limits L, opts httplimit.Options, next http.Handler) http.Handler {
	t.Helper()
	mw, err := httplimit.New(limits, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw(next)
}

// ok serves everything.
func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

var okHandler = http.HandlerFunc(ok)

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handlers that say two statuses
	server.Config.DisableGeneralOptionsHandler = true   // OPTIONS * is ours
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with header fields, "Name: value", over a real connection.
func ask(t testing.TB, method, url string, fields ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(body)}
}

func get(t testing.TB, url string, fields ...string) reply {
	t.Helper()
	return ask(t, http.MethodGet, url, fields...)
}

// wantStatus fails unless requests are answered so, one after the other.
func wantStatus(t testing.TB, url string, want ...int) {
	t.Helper()
	for i, status := range want {
		if got := get(t, url); got.status != status {
			t.Errorf("request %d: status %d, want %d; %s", i+1, got.status, status, got.body)
		}
	}
}

// A document is a problem as a client reads it.
type document struct {
	Type, Title, Detail string
	Status              int
	Violated            []string `json:"violated-policies"`
}

// problem reads a problem document, and nothing else.
func (r reply) problem(t testing.TB) document {
	t.Helper()
	if got := r.header.Values("Content-Type"); !slices.Equal(got, []string{"application/problem+json"}) {
		t.Errorf("Content-Type is %q", got)
	}
	var d document
	decoder := json.NewDecoder(strings.NewReader(r.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatalf("%v, in %s", err, r.body)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Errorf("there is more than a document: %s", r.body)
	}
	if d.Status != r.status || d.Title == "" || d.Detail == "" {
		t.Errorf("status %d is told as %+v", r.status, d)
	}
	return d
}

// list reads a field of RFC 9651 that must be one line, in which a name is once: its items as they are written, by name.
func list(t testing.TB, h http.Header, field string) map[string]string {
	t.Helper()
	lines := h.Values(field)
	if len(lines) != 1 {
		t.Fatalf("%s has the lines %q, want one", field, lines)
	}
	read, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%s: %v, in %q", field, err, lines)
	}
	items := map[string]string{}
	for _, member := range read {
		item := member.(httpsfv.Item)
		name := item.Value.(string)
		if _, twice := items[name]; twice {
			t.Errorf("%s has %q twice: %q", field, name, lines)
		}
		text, err := httpsfv.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		_, items[name], _ = strings.Cut(text, ";")
	}
	return items
}

// param returns a parameter of an item that list has read.
func param(params, name string) string {
	for p := range strings.SplitSeq(params, ";") {
		if value, ok := strings.CutPrefix(p, name+"="); ok {
			return value
		}
	}
	return ""
}
