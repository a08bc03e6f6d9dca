package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
)

// until calls f until it returns true.
func until(t *testing.T, f func() bool) {
	t.Helper()
	for !f() {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ready returns the status and the body of /readyz of the admin listener.
func ready(t *testing.T, s *server.Server) (status int, body string) {
	t.Helper()
	res, err := http.Get("http://" + s.AdminAddr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, read(t, res, err)
}

// A server that starts without its engine decides without it, and recovers. It logs both, once: the
// record has each line as text and as JSON.
func TestStartWithoutTheEngine(t *testing.T) {
	for name, start2 := range map[string]func(testing.TB) *testengine.Server{
		"redis":     func(t testing.TB) *testengine.Server { return testengine.Redis(t) },
		"postgres":  func(t testing.TB) *testengine.Server { return testengine.Postgres(t) },
		"memcached": func(t testing.TB) *testengine.Server { return testengine.Memcached(t) },
	} {
		t.Run(name, func(t *testing.T) {
			e := start2(t)
			e.Stop(t)
			var log record
			path := written(t, "policies: [{name: p, key: all, limits: [100/1h], on_store_error: local}]")
			s := start(t, server.Config{Store: e.URL(), OnStoreError: store.Local, Policies: path, Log: log.logger()})
			if got := redis(t, s, `WEIR.TAKE k 5/1h ONERROR allow`, 8); !strings.HasSuffix(got, ":1 ") {
				t.Errorf("take: %q", got)
			}
			if got := redis(t, s, `WEIR.TAKEALL k 5/1h AND l 5/1h`, 22); !strings.Contains(got, ":1 :5 :4 ") {
				t.Errorf("joint take: %q", got)
			}
			if got := post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`); !strings.Contains(got, `"failed":true,"local":true`) {
				t.Errorf("take over HTTP: %s", got)
			}
			if got := post(t, s, "/v1/check", `{}`); !strings.Contains(got, `"failed":true,"local":true`) {
				t.Errorf("check: %s", got)
			}
			if status, body := ready(t, s); status != 200 || !strings.Contains(body, " has not served since ") {
				t.Errorf("ready: %d %s", status, body)
			}
			if got := get(t, s, "/metrics"); !strings.Contains(got, `weir_decisions_without_store_total{on_store_error="local",protocol="http"} 2`) {
				t.Errorf("metrics: %s", weirOnly(got))
			}
			e.Start(t)
			until(t, func() bool { return strings.HasSuffix(redis(t, s, `WEIR.TAKE later 500/1h ONERROR allow`, 8), ":0 ") })
			if got := post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`); !strings.HasPrefix(got, `{"allowed":true,"limit":5,"remaining":4,`) || strings.Contains(got, "failed") {
				t.Errorf("take over HTTP: %s", got)
			}
			if got := post(t, s, "/v1/check", `{}`); !strings.Contains(got, `"failed":false`) {
				t.Errorf("check: %s", got)
			}
			if got := redis(t, s, `WEIR.TAKEALL m 5/1h AND l 5/1h`, 22); !strings.Contains(got, ":1 :5 :4 ") {
				t.Errorf("joint take: %q", got)
			}
			until(t, func() bool { return strings.Contains(log.String(), "the engine serves again") })
			if strings.Contains(log.String(), "the store failed") {
				t.Errorf("requests are logged although the outage is: %s", log.String())
			}
			if status, body := ready(t, s); status != 200 || body != "ok\n" {
				t.Errorf("ready: %d %s", status, body)
			}
			if text := log.String(); strings.Count(text, "the engine does not serve;") != 2 || strings.Count(text, "the engine serves again") != 2 {
				t.Errorf("logged: %s", text)
			}
		})
	}
}

// Where decisions are denied, a server without its engine is not ready.
func TestNotReadyWithoutTheEngine(t *testing.T) {
	e := testengine.Redis(t)
	e.Stop(t)
	for text, on := range map[string]store.OnError{
		"policies: [{name: p, key: all, limits: [100/1h], on_store_error: local}]": store.Deny,
		"policies: [{name: p, key: all, limits: [100/1h]}]":                        store.Allow,
	} {
		s := start(t, server.Config{Store: e.URL(), OnStoreError: on, Policies: written(t, text)})
		if status, body := ready(t, s); status != 503 || !strings.Contains(body, " has not served since ") {
			t.Errorf("%v: %d %s", on, status, body)
		}
	}
}

// With WaitForStore, a server starts when the engine does, or ends with an error.
func TestWaitForStore(t *testing.T) {
	e := testengine.Redis(t)
	e.Stop(t)
	open := func(ctx context.Context, wait time.Duration) error {
		s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0", Store: e.URL(), WaitForStore: wait})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		return s.Open(ctx)
	}
	var refused *server.ConfigError
	if err := open(t.Context(), time.Millisecond); !errors.As(err, &refused) || refused.Field != "store" {
		t.Errorf("after a millisecond: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := open(ctx, time.Hour); err == nil {
		t.Error("opened without an engine")
	}
	done := make(chan error)
	go func() { done <- open(t.Context(), time.Hour) }()
	e.Start(t)
	if err := <-done; err != nil {
		t.Errorf("the engine serves: %v", err)
	}
}

// A password that the engine refuses ends the start: it does not heal by itself.
func TestWrongPasswordEndsTheStart(t *testing.T) {
	e := testengine.Redis(t, "--requirepass", "right")
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0", Store: "redis://:wrong@" + e.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	var refused *server.ConfigError
	if err := s.Open(t.Context()); !errors.As(err, &refused) || strings.Contains(err.Error(), "wrong@") {
		t.Errorf("%v", err)
	}
}

// An outage of a running engine is logged when the circuit opens and when it closes.
func TestOutageIsLogged(t *testing.T) {
	e := testengine.Redis(t)
	var log record
	s := start(t, server.Config{Store: e.URL(), OnStoreError: store.Allow, Log: log.logger()})
	e.Stop(t)
	until(t, func() bool {
		redis(t, s, "WEIR.TAKE k 5/1h", 7)
		return strings.Contains(log.String(), "the engine does not serve;")
	})
	if status, body := ready(t, s); status != 200 || !strings.Contains(body, "warning: the engine") {
		t.Errorf("ready: %d %s", status, body)
	}
	e.Start(t)
	until(t, func() bool { return strings.Contains(log.String(), "the engine serves again") })
	if text := log.String(); !strings.Contains(text, "decided_without=") || !strings.Contains(text, "away=") {
		t.Errorf("logged: %s", text)
	}
}
