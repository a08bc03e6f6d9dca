package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

const policies = `
policies:
  - {name: api, match: {path: /api}, key: ["header:X-Key"], limits: [3/1h], plans: {free: unlimited}, candidate: [1/1h]}
  - {name: tried, match: {path: /api}, key: all, mode: shadow, limits: [2/1h]}
`

// written returns the path of a file with this text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPoliciesAreOneOnAllProtocols(t *testing.T) {
	s := start(t, server.Config{Policies: written(t, policies)})
	if got := redis(t, s, "WEIR.CHECK PATH /api HEADER X-Key k COST 2", 4); got != "*9 :1 :3 :1 " {
		t.Errorf("over RESP: %q", got)
	}
	body := `{"path":"/api","headers":{"x-key":"k"}}`
	if got := post(t, s, "/v1/check", body); !strings.HasPrefix(got, `{"allowed":true,"limit":3,"remaining":0,`) {
		t.Errorf("over HTTP: %s", got)
	}
	if got := redis(t, s, "WEIR.CHECK PATH /api HEADER X-Key k", 4); got != "*9 :0 :3 :0 " {
		t.Errorf("over RESP: %q", got)
	}
	metrics := get(t, s, "/metrics")
	for _, want := range []string{
		`weir_policy_decisions_total{policy="api",verdict="allowed"} 2`, `weir_policy_decisions_total{policy="api",verdict="denied"} 1`,
		`weir_policy_decisions_total{policy="api",verdict="candidate_denied"} 2`, `weir_policy_decisions_total{policy="api",verdict="failed"} 0`,
		`weir_policy_decisions_total{policy="tried",verdict="shadow_denied"} 2`, `weir_policy_decisions_total{policy="tried",verdict="allowed"} 0`,
		"weir_config_last_reload_successful 1", "weir_config_last_reload_timestamp_seconds 1.",
		`weir_decisions_total{protocol="resp",verdict="denied"} 1`, `weir_decisions_total{protocol="http",verdict="allowed"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want) {
			t.Errorf("/metrics has no %s in\n%s", want, weirOnly(metrics))
		}
	}
	if strings.Contains(metrics, "weir_clients") {
		t.Error("/metrics has clients, and there is no database of them")
	}
}

// A denied request has no token on any protocol, also if a candidate admits the request.
func TestDeniedChecksHaveNoToken(t *testing.T) {
	s := start(t, server.Config{Policies: written(t, "policies: [{name: a, key: all, limits: [1/1h], candidate: [9/1h, concurrent 9 lease=1h]}]")})
	if got := post(t, s, "/v1/check", `{"path":"/","hold_ms":60000}`); !strings.HasPrefix(got, `{"allowed":true,`) || !strings.Contains(got, `"token":`) {
		t.Errorf("over HTTP: %s", got)
	}
	if got := post(t, s, "/v1/check", `{"path":"/","hold_ms":60000}`); !strings.HasPrefix(got, `{"allowed":false,`) || strings.Contains(got, "token") {
		t.Errorf("over HTTP: %s", got)
	}
	// The decision in six numbers, a list of one name, and the token, empty.
	if got := redis(t, s, "WEIR.CHECK PATH / HOLD 60000", 11); !strings.HasPrefix(got, "*9 :0 :1 :0 ") || !strings.HasSuffix(got, " *1 $1 a $0 ") {
		t.Errorf("over RESP: %q", got)
	}
}

func TestNoPolicies(t *testing.T) {
	s := start(t, server.Config{})
	if got := redis(t, s, "WEIR.CHECK PATH /api", 1); !strings.HasPrefix(got, "-ERR this server has no policies") {
		t.Errorf("over RESP: %q", got)
	}
	if got := post(t, s, "/v1/check", "{}"); !strings.Contains(got, `"status":404,"detail":"this server has no policies`) {
		t.Errorf("over HTTP: %s", got)
	}
	if err := s.Reload(); err != nil || s.Status().Config != nil || s.Status().Clients != nil {
		t.Errorf("%v, %+v", err, s.Status())
	}
	if got := get(t, s, "/v1/status"); !strings.HasPrefix(got, `{"version":"dev","store":"memory","started":"20`) || strings.Contains(got, "config") {
		t.Errorf("status: %s", got)
	}
	if got := get(t, s, "/metrics"); strings.Contains(got, "weir_config") {
		t.Error("/metrics has a configuration, and there is none")
	}
}

// The file of policies may name the database, and the server's configuration another.
func TestWhichClients(t *testing.T) {
	ctx := context.Background()
	databases := map[string]string{}
	for _, name := range []string{"file", "flag"} {
		databases[name] = "sqlite:" + filepath.Join(t.TempDir(), name+".db")
		db, err := clients.Open(ctx, databases[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Set(ctx, clients.Client{Name: name, Plan: "free"}), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	path := written(t, policies+"clients: {database: \""+databases["file"]+"\", poll: 100ms}\n")
	for name, cfg := range map[string]server.Config{"file": {Policies: path}, "flag": {Policies: path, Clients: databases["flag"]}} {
		s := start(t, cfg)
		if got := post(t, s, "/v1/check", `{"path":"/api","cost":9,"headers":{"X-Key":"`+name+`"}}`); !strings.HasPrefix(got, `{"allowed":true`) {
			t.Errorf("the client of the %s: %s", name, got)
		}
		if c := s.Status().Clients; c == nil || c.Clients != 1 || c.Database != databases[name] {
			t.Errorf("status of the %s: %+v", name, c)
		}
		if got := get(t, s, "/metrics"); !strings.Contains(got, "\nweir_clients 1\n") || !strings.Contains(got, "\nweir_clients_last_sync_successful 1\n") {
			t.Errorf("metrics of the %s: %s", name, weirOnly(got))
		}
	}
}

func TestPoliciesRefused(t *testing.T) {
	good := written(t, policies)
	for name, test := range map[string]struct {
		cfg   server.Config
		field string // of a server.ConfigError; else it is another error
		want  string
	}{
		"Clients":               {server.Config{Clients: "sqlite:c.db"}, "clients", "no policies"},
		"Snapshot":              {server.Config{ClientsSnapshot: "s"}, "clients-snapshot", "no policies"},
		"NoFile":                {server.Config{Policies: "no.yaml"}, "config", "no such file"},
		"Directory":             {server.Config{Policies: t.TempDir()}, "config", "is a directory"},
		"SnapshotOnly":          {server.Config{Policies: good, ClientsSnapshot: "s"}, "clients-snapshot", "no database"},
		"Broken":                {server.Config{Policies: written(t, "policies: [{}]")}, "", "weir.yaml:1:12: "},
		"LimitOfStore":          {server.Config{Policies: written(t, strings.Replace(policies, "3/1h", "1/900000h", 1))}, "", "weir.yaml:3:"},
		"DatabaseWithoutScheme": {server.Config{Policies: good, Clients: "secret"}, "", "accepted: sqlite:"},
	} {
		cfg := test.cfg
		cfg.RESP, cfg.HTTP = "0", "0"
		s, err := server.New(cfg)
		if err == nil {
			err = s.Open(context.Background())
		}
		config, ok := errors.AsType[*server.ConfigError](err)
		if ok != (test.field != "") || ok && config.Field != test.field || !ok && err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want one of %q with %q", name, err, test.field, test.want)
		}
		if name == "Broken" {
			if _, ok := errors.AsType[*policy.ConfigError](err); !ok {
				t.Errorf("%s: %T, want a *policy.ConfigError", name, err)
			}
		}
		if s != nil {
			if err := s.Close(); err != nil {
				t.Errorf("%s: closing: %v", name, err)
			}
		}
	}
}
