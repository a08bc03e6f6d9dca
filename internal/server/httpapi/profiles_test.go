package httpapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/httpapi"
)

// startRecording requests a recording, and returns when that is under way.
func startRecording(ctx context.Context, t *testing.T, s *httpapi.Server) (done chan *http.Response) {
	t.Helper()
	done = make(chan *http.Response, 1)
	go func() {
		done <- send(s, httptest.NewRequestWithContext(ctx, http.MethodGet, "/debug/pprof/trace?seconds=60", nil))
	}()
	for s.Recordings() == 0 { // until the goroutine has run
		select {
		case res := <-done:
			t.Fatalf("the recording ended with %d", res.StatusCode)
		default:
			time.Sleep(time.Millisecond)
		}
	}
	return done
}

// One recording is made at a time, and the end of its request ends it: a minute passes in no test.
func TestOneRecordingAtATime(t *testing.T) {
	s := newServer(admin)
	ctx, cancel := context.WithCancel(t.Context())
	done := startRecording(ctx, t, s)
	for _, path := range []string{"/debug/pprof/trace", "/debug/pprof/profile?seconds=60"} {
		if p := problem(t, send(s, httptest.NewRequest(http.MethodGet, path, nil))); p.Status != http.StatusServiceUnavailable {
			t.Errorf("%s during a recording: %+v", path, p)
		}
	}
	if res := send(s, httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil)); res.StatusCode != http.StatusOK {
		t.Errorf("a snapshot during a recording: %d", res.StatusCode)
	}
	cancel()
	if body := []byte(read(t, <-done)); !bytes.HasPrefix(body, []byte("go 1.")) {
		t.Errorf("the trace begins with %.16q", body)
	}
	if n := s.Recordings(); n != 0 {
		t.Errorf("%d recordings after the end", n)
	}
}

// A shutdown does not wait for a recording.
func TestShutdownEndsRecordings(t *testing.T) {
	s := newServer(admin)
	done := startRecording(t.Context(), t, s)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if res := <-done; res.StatusCode != http.StatusOK {
		t.Errorf("the recording ended with %d", res.StatusCode)
	}
}

func TestProfilesAreBounded(t *testing.T) {
	s := newServer(admin)
	for path, field := range map[string]string{
		"/debug/pprof/profile?seconds=3600":      "seconds",
		"/debug/pprof/profile?seconds=0":         "seconds",
		"/debug/pprof/trace?seconds=-1":          "seconds",
		"/debug/pprof/trace?seconds=1e1":         "seconds",
		"/debug/pprof/trace?seconds=1&seconds=2": "seconds",
		"/debug/pprof/heap?seconds=5":            "parameter seconds",
		"/debug/pprof/heap?gc=1":                 "parameter gc",
		"/debug/pprof/goroutine?debug=3":         "debug",
		"/debug/pprof/profile?debug=1":           "parameter debug",
		"/debug/pprof/goroutine?debug=two":       "debug",
	} {
		if p := problem(t, send(s, httptest.NewRequest(http.MethodGet, path, nil))); p.Status != http.StatusBadRequest || p.Field != field || p.Accepted == "" {
			t.Errorf("%s: %+v, want 400 for %s", path, p, field)
		}
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof", "/debug/pprof/mutex"} {
		if res := send(s, httptest.NewRequest(http.MethodGet, path, nil)); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	for _, site := range []string{"cross-site", "same-site"} { // an image of a foreign page
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/profile", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		if p := problem(t, send(s, r)); p.Status != http.StatusForbidden {
			t.Errorf("%s: %+v", site, p)
		}
	}
	if res := send(s, httptest.NewRequest(http.MethodHead, "/debug/pprof/profile?seconds=60", nil)); res.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	if got := read(t, send(s, httptest.NewRequest(http.MethodGet, "/debug/pprof/goroutine?debug=2", nil))); !strings.Contains(got, "TestProfilesAreBounded") {
		t.Errorf("the goroutines are %.200s", got)
	}
}

// The routes of the program that a server is a part of stay its own.
func TestProfilesAreNotOnTheDefaultMux(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil)
	if _, pattern := http.DefaultServeMux.Handler(r); pattern != "" {
		t.Errorf("%s is served", pattern)
	}
}
