package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// Secrets that must not be in any log, status, metric or reply of the tests below.
const (
	keySecret      = "sk_live_key_4f9a8b7c6d5e"
	clientSecret   = "sk_live_client_1a2b3c4d5e"
	passwordSecret = "swordfish-9f8e7d6c"
)

// A record is the whole log, at every level, as text and as JSON.
type record struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

func (r *record) logger() *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelDebug - 4}
	return slog.New(slog.NewMultiHandler(slog.NewTextHandler(r, o), slog.NewJSONHandler(r, o)))
}

// clean reports secrets in a text.
func clean(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{keySecret, clientSecret, passwordSecret} {
		if strings.Contains(text, secret) || strings.Contains(text, secret[5:]) {
			t.Errorf("%s has a secret: %s", where, text)
		}
	}
}

const faultPolicies = `
policies:
  - {name: api, match: {path: /api}, key: ["header:X-Key"], limits: [3/1h], plans: {free: [9/1h]}}
  - {name: tried, match: {path: /tried}, key: ["header:X-Key"], mode: shadow, limits: [3/1h]}
  - {name: open, match: {path: /open}, key: ["header:X-Key"], limits: [3/1h], on_store_error: allow}
  - {name: work, match: {path: /work}, key: ["header:X-Key"], limits: ["concurrent 1 lease=1m"]}
`

// exercise sends every kind of request to a server whose store fails, and returns the replies.
func exercise(t *testing.T, s *server.Server) string {
	t.Helper()
	var replies strings.Builder
	for _, command := range []string{
		"WEIR.TAKE " + keySecret + " 5/1h", "WEIR.PEEK " + keySecret + " 5/1h", "WEIR.RESET " + keySecret + " 5/1h", "CL.THROTTLE " + keySecret + " 4 5 3600",
		"WEIR.CHECK PATH /api HEADER X-Key " + keySecret, "WEIR.CHECK PATH /work HEADER X-Key " + keySecret, "CLIENT LIST", "INFO",
	} {
		replies.WriteString(redis(t, s, command, 1))
	}
	body := `{"key":"` + keySecret + `","limit":"5/1h"}`
	for _, path := range []string{"/v1/take", "/v1/take-up-to", "/v1/peek", "/v1/refund", "/v1/reset"} {
		replies.WriteString(post(t, s, path, body))
	}
	for _, path := range []string{"/api", "/tried", "/open", "/work"} {
		for _, op := range []string{"/v1/check", "/v1/explain"} {
			replies.WriteString(post(t, s, op, `{"path":"`+path+`","headers":{"X-Key":"`+keySecret+`"}}`))
		}
	}
	for _, path := range []string{"/readyz", "/healthz", "/v1/status", "/metrics"} {
		replies.WriteString(get(t, s, path))
	}
	return replies.String()
}

// No fault of the engine brings a key, a password or the name of a client into a log, a reply, the
// status or the metrics.
func TestFaultsShowNoSecrets(t *testing.T) {
	redisKeys := func(t *testing.T, e *testengine.Server, spoil string) {
		t.Helper()
		conn, err := net.Dial("tcp", e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		script := "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', key) " + spoil + " n = n + 1 end return n"
		if _, err := fmt.Fprintf(conn, "*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(script), script); err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, 64)
		if n, err := conn.Read(reply); err != nil || reply[0] != ':' || reply[1] == '0' {
			t.Fatalf("%q, %v", reply[:n], err)
		}
	}
	for name, fault := range map[string]struct {
		happen func(t *testing.T, e *testengine.Server)
		logged string
	}{
		"Gone":       {func(t *testing.T, e *testengine.Server) { e.Kill(t) }, "no decision"},
		"WrongType":  {func(t *testing.T, e *testengine.Server) { redisKeys(t, e, "redis.call('LPUSH', key, 'x')") }, "the value of a key is no state"},
		"WrongValue": {func(t *testing.T, e *testengine.Server) { redisKeys(t, e, "redis.call('SET', key, 'x')") }, "the value of a key is no state"},
	} {
		t.Run(name, func(t *testing.T) {
			e := testengine.Redis(t)
			var log record
			s := start(t, server.Config{
				Store: "redis://" + e.Addr() + "/0?timeout=5s", Policies: written(t, faultPolicies), Log: log.logger(),
			})
			exercise(t, s) // to make states
			fault.happen(t, e)
			clean(t, "a reply", exercise(t, s))
			clean(t, "the log", log.String())
			if !strings.Contains(log.String(), fault.logged) {
				t.Errorf("the fault is not logged: %s", log.String())
			}
		})
	}
}

// No secrets either if a store of the program has the key in its error.
func TestErrorsOfStoresShowNoKeys(t *testing.T) {
	var log record
	c := &counted{Store: memory.New(memory.Options{})}
	s := start(t, server.Config{Opened: c, Policies: written(t, faultPolicies), Log: log.logger()})
	c.err = fmt.Errorf("take: %w; %w", &store.KeyError{Key: "weir:api/" + keySecret, Err: errors.New("WRONGTYPE")}, store.ErrNothingDone)
	clean(t, "a reply", exercise(t, s))
	clean(t, "the log", log.String())
	for _, want := range []string{"resp: no decision could be made", "no decision", "limits that are not enforced were not decided", "the value of a key is no state"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not logged: %s", want, log.String())
		}
	}
	var other record
	s = start(t, server.Config{Opened: c, RESP: "off", Log: other.logger()})
	clean(t, "a reply", get(t, s, "/readyz"))
	clean(t, "the log", other.String())
	if !strings.Contains(other.String(), "not ready") {
		t.Errorf("it is not logged: %s", other.String())
	}
}

// Invalid rows and absent databases bring no name and no password anywhere.
func TestFaultsOfClientsShowNoSecrets(t *testing.T) {
	ctx := context.Background()
	url := "sqlite:" + filepath.Join(t.TempDir(), "clients.db")
	db, err := clients.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	put := func(name, plan string) {
		t.Helper()
		if err := db.Set(ctx, clients.Client{Name: name, Plan: plan}); err != nil {
			t.Fatal(err)
		}
	}
	put("other", "free")
	put(clientSecret, "free")
	put("header:X-Key="+clientSecret, "gone")
	path, snapshot := written(t, faultPolicies), filepath.Join(t.TempDir(), "snapshot")
	var log record
	s := start(t, server.Config{Policies: path, Clients: url, ClientsSnapshot: snapshot, Log: log.logger()})
	put(clientSecret, "lost")
	for end := time.Now().Add(time.Minute); s.Status().Clients.BadRows != 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", s.Status().Clients)
		}
	}
	answer := post(t, s, "/v1/check", `{"path":"/api","headers":{"X-Key":"`+clientSecret+`"}}`)
	if !strings.Contains(answer, `"plan":"free"`) {
		t.Errorf("the client has not its last good row: %s", answer)
	}
	clean(t, "a reply", answer+post(t, s, "/v1/explain", `{"path":"/api","headers":{"X-Key":"`+clientSecret+`"}}`))
	for _, path := range []string{"/v1/status", "/readyz", "/metrics"} {
		text := get(t, s, path)
		clean(t, path, text)
		want := map[string]string{"/v1/status": `"bad_rows":2,`, "/readyz": "warning: rows of the clients make no sense", "/metrics": "\nweir_clients_bad_rows 2\n"}[path]
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %q: %s", path, want, text)
		}
	}
	if metrics := get(t, s, "/metrics"); !strings.Contains(metrics, "\nweir_clients_last_sync_successful 0\n") {
		t.Errorf("%s", weirOnly(metrics))
	}
	for name, cfg := range map[string]server.Config{
		"no plan of theirs": {Policies: written(t, strings.ReplaceAll(faultPolicies, "free", "other")), Clients: url},
		"no PostgreSQL":     {Policies: path, Clients: "postgres://weir:" + passwordSecret + "@127.0.0.1:1/c?connect_timeout=1"},
		"no Redis":          {Store: "redis://weir:" + passwordSecret + "@127.0.0.1:1", WaitForStore: time.Millisecond},
		"no such scheme":    {Store: "redi://weir:" + passwordSecret + "@127.0.0.1:1"},
	} {
		cfg.RESP, cfg.HTTP, cfg.Admin, cfg.Log = "0", "off", "off", log.logger()
		s, err := server.New(cfg)
		if err == nil {
			err = errors.Join(s.Open(ctx), s.Close())
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		clean(t, name, fmt.Sprint(err))
	}
	clean(t, "the log", log.String())
	if !strings.Contains(log.String(), "bad rows") {
		t.Errorf("bad rows are not logged: %s", log.String())
	}
}

// Unprotected ways to the engine are warned of; the password is not shown.
func TestWarningsOfURLs(t *testing.T) {
	var log record
	s, err := server.New(server.Config{
		RESP: "0", HTTP: "off", Admin: "off", Policies: written(t, faultPolicies), Log: log.logger(),
		Clients: "postgres://weir:" + passwordSecret + "@db.invalid/c?connect_timeout=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	// no name ends in invalid
	if err := errors.Join(s.Open(context.Background()), s.Close()); err == nil {
		t.Error("no error")
	}
	if text := log.String(); !strings.Contains(text, "sslmode=verify-full") || !strings.Contains(text, "postgres://db.invalid/c") {
		t.Errorf("logged %s", text)
	}
	clean(t, "the log", log.String())
}
