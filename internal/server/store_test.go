package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// counted is a store of the program's that counts, does not trust its callers' time, and fails when told to.
type counted struct {
	*memory.Store
	err    error
	closed bool
}

func (c *counted) Counts() store.Counts {
	return store.Counts{Healed: 1, Conflicts: 2, Reloads: 3, Swept: 4, Failures: 5}
}
func (c *counted) TrustsClientTime() bool { return false }
func (c *counted) Close() error           { c.closed = true; return nil }

func (c *counted) Bind(spec store.Spec) (store.Binding, error) {
	b, err := c.Store.Bind(spec)
	return failing{b, c}, err
}

type failing struct {
	store.Binding
	of *counted
}

func (f failing) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if f.of.err != nil {
		return algorithm.Verdict{}, f.of.err
	}
	return f.Binding.Do(ctx, key, op, now)
}

func TestStoreOfTheProgram(t *testing.T) {
	var log bytes.Buffer
	c := &counted{Store: memory.New(memory.Options{})}
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0", Opened: c, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	if got := redis(t, s, "WEIR.TAKE k 5/1h", 4); got != "*6 :1 :5 :4 " {
		t.Errorf("take: %q", got)
	}
	if got := get(t, s, "/readyz"); got != "ok\n" {
		t.Errorf("ready: %q", got)
	}
	c.err = errors.New("dial tcp 10.1.1.1: no route")
	if got := redis(t, s, "WEIR.TAKE k 5/1h", 1); got != "-ERR no decision could be made, try again " {
		t.Errorf("take of a store that fails: %q", got)
	}
	if got := post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`); !strings.Contains(got, `"status":503`) || strings.Contains(got, "10.1.1.1") {
		t.Errorf("take over HTTP of a store that fails: %s", got)
	}
	if res, err := http.Get("http://" + s.HTTPAddr().String() + "/readyz"); err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("ready: %+v, %v", res, err)
	}
	metrics := get(t, s, "/metrics")
	for _, want := range []string{
		"weir_store_healed_total 1", "weir_store_conflicts_total 2", "weir_store_reloads_total 3", "weir_store_swept_total 4",
		"weir_store_failures_total 5", `weir_store_info{store="other"} 1`,
		`weir_undecided_total{protocol="resp"} 1`, `weir_undecided_total{protocol="http"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s in\n%s", want, weirOnly(metrics))
		}
	}
	if strings.Contains(metrics, "weir_keys") {
		t.Error("/metrics has the counts of a store in memory")
	}
	cancel()
	if err := errors.Join(<-done, s.Close()); err != nil {
		t.Error(err)
	}
	if c.closed {
		t.Error("the store, which is the program's, was closed")
	}
	if !strings.Contains(log.String(), "10.1.1.1") {
		t.Errorf("the log does not say why no decision could be made: %s", &log)
	}
}

func TestMemoryHasNoCountsOfEngines(t *testing.T) {
	s := start(t, server.Config{})
	if got := get(t, s, "/metrics"); strings.Contains(got, "weir_store_failures_total") || !strings.Contains(got, `weir_store_info{store="memory"} 1`) {
		t.Errorf("metrics: %s", weirOnly(got))
	}
	if got := get(t, s, "/readyz"); got != "ok\n" {
		t.Errorf("ready: %q", got)
	}
}

func TestStoresRefused(t *testing.T) {
	program := &counted{Store: memory.New(memory.Options{})}
	for name, test := range map[string]struct {
		cfg   server.Config
		field string
	}{
		"Unknown":            {server.Config{Store: "mysql://u:secret@h"}, "store"},
		"NoURL":              {server.Config{Store: "secret"}, "store"},
		"MaxKeys":            {server.Config{Store: "redis://h", MaxKeys: 5}, "max-keys"},
		"Memory":             {server.Config{Store: "redis://h", Memory: 1 << 30}, "memory"},
		"Overflow":           {server.Config{Store: "redis://h", Overflow: memory.Share}, "overflow"},
		"Both":               {server.Config{Store: "redis://u:secret@h", Opened: program}, "store"},
		"TrustWithoutTrust":  {server.Config{Opened: program, TrustClientTime: true}, "trust-client-time"},
		"MaxKeysWithProgram": {server.Config{Opened: program, MaxKeys: 5}, "max-keys"},
	} {
		err := test.cfg.Validate()
		var config *server.ConfigError
		if !errors.As(err, &config) || config.Field != test.field || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want a *ConfigError of %s", name, err, test.field)
		}
	}
}

func TestEngineThatIsNotThere(t *testing.T) {
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0", Store: "redis://u:secret@127.0.0.1:1/0?timeout=1s", WaitForStore: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Open(context.Background())
	var config *server.ConfigError
	if !errors.As(err, &config) || config.Field != "store" || config.Value != "redis://127.0.0.1:1/0" || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestInfoTellsOfTheStore(t *testing.T) {
	s := start(t, server.Config{Store: testengine.Redis(t).URL(), TrustClientTime: true})
	if got := redis(t, s, "INFO weir", 8); !strings.Contains(got, "weir_store:redis weir_trusts_client_time:1 weir_tick_ns:1000") {
		t.Errorf("INFO weir: %q", got)
	}
	if !strings.HasPrefix(s.Store(), "redis://127.0.0.1:") {
		t.Errorf("the store is %s", s.Store())
	}
}
