package server_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

// More requests than may wait for the engine are refused under every decision for the time that the
// store fails: a flood of requests must not open a limit.
func TestOverloadAllowsNothing(t *testing.T) {
	e := testengine.Redis(t)
	path := written(t, `
policies:
  - {name: open, match: {path: /open}, key: all, limits: [5/1h], on_store_error: allow}
  - {name: here, match: {path: /here}, key: all, limits: [5/1h], on_store_error: local}
`)
	s := start(t, server.Config{Store: e.URL() + "?max_calls=1&timeout=1h", OnStoreError: store.Allow, Policies: path})
	waiting := func(calls string) func() bool {
		return func() bool { return strings.Contains(get(t, s, "/metrics"), "\nweir_store_calls_waiting "+calls+"\n") }
	}
	post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`)
	e.Pause(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		if got := post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`); !strings.Contains(got, `"remaining":3`) {
			t.Errorf("the request that waited: %s", got)
		}
	})
	until(t, waiting("1"))
	for _, request := range [][2]string{
		{"/v1/take", `{"key":"k","limit":"5/1h"}`},
		{"/v1/take", `{"key":"k","limit":"5/1h","on_store_error":"local"}`},
		{"/v1/check", `{"path":"/open"}`},
		{"/v1/check", `{"path":"/here"}`},
		{"/v1/check", `{"path":"/here","on_store_error":"allow"}`},
	} {
		if got := post(t, s, request[0], request[1]); !strings.Contains(got, `"status":503,"detail":"the store is overloaded; try again"`) {
			t.Errorf("%s %s: %s", request[0], request[1], got)
		}
	}
	for _, command := range []string{"WEIR.TAKE k 5/1h", "WEIR.TAKE k 5/1h ONERROR local", "WEIR.CHECK PATH /open"} {
		if got := redis(t, s, command, 1); !strings.HasPrefix(got, "-ERR the store is overloaded, try again; nothing was changed") {
			t.Errorf("%s: %q", command, got)
		}
	}
	r, err := remote.Open(t.Context(), "weir://"+s.RESPAddr().String()+"?timeout=1h", remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := weir.New(weir.MustParseLimit("5/1h"), weir.WithStore(r), weir.WithOnStoreError(store.Allow))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := l.Take(t.Context(), "k", 1); !errors.Is(err, store.ErrOverloaded) || !errors.Is(err, store.ErrNothingDone) || d.Allowed {
		t.Errorf("through another process: %+v, %v", d, err)
	}
	e.Resume(t)
	wg.Wait()
	if got := post(t, s, "/v1/check", `{"path":"/open"}`); !strings.Contains(got, `"allowed":true`) || !strings.Contains(got, `"failed":false`) {
		t.Errorf("after the overload: %s", got)
	}
	if got := get(t, s, "/metrics"); !strings.Contains(got, "\nweir_store_calls_refused_total{reason=\"too_many\"} 9\n") {
		t.Errorf("%s", got)
	}
}
