package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
)

// ruleFile is a file of policies that a test edits.
type ruleFile string

// newRules returns one whose limit is 5 an hour.
func newRules(t *testing.T) ruleFile {
	t.Helper()
	f := ruleFile(filepath.Join(t.TempDir(), "weir.yaml"))
	f.write(t, rulesWith("5/1h"))
	return f
}

// rulesWith are policies of which one has this limit.
func rulesWith(limit string) string {
	return fmt.Sprintf(`
policies:
  - {name: api, match: {path: /api}, key: ["header:X-Key"], limits: [%q], plans: {gold: [10/1h], blocked: deny}}
  - {name: denies, match: {path: /denies}, key: [client_ip], limits: [5/1h], on_store_error: deny}
  - {name: allows, match: {path: /allows}, key: [client_ip], limits: [5/1h], on_store_error: allow}
  - {name: local, match: {path: /local}, key: [client_ip], limits: [2/1h], on_store_error: local}
`, limit)
}

// write replaces the file as editors do: by another that is renamed over it.
func (f ruleFile) write(t *testing.T, text string) {
	t.Helper()
	next := string(f) + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, string(f)); err != nil {
		t.Fatal(err)
	}
}

// checked is the answer to a check.
type checked struct {
	Allowed, Failed  bool
	Limit, Remaining int64
	Denied           []string
	Limits           []struct {
		Plan  string
		Local bool
	}
}

// check asks whether a request for a path may pass, with a key in its header.
func (d *daemon) check(t *testing.T, path, key string, cost int) (c checked) {
	t.Helper()
	body := fmt.Sprintf(`{"path":%q,"client_ip":"192.0.2.7","headers":{"X-Key":%q},"cost":%d}`, path, key, cost)
	status, answer := d.post(t, "/v1/check", body)
	if err := json.Unmarshal([]byte(answer), &c); err != nil || status != 200 {
		t.Fatalf("%s: %d %s; log: %s", body, status, answer, d.log)
	}
	return c
}

// soon returns when a condition holds. Only the test binary has a deadline.
func soon(t *testing.T, d *daemon, what string, is func() bool) {
	t.Helper()
	t.Logf("waiting until %s; log: %s", what, d.log)
	for !is() {
		time.Sleep(10 * time.Millisecond)
	}
}

// status is what /v1/status tells.
type status struct {
	Config  struct{ Source, Refused string }
	Clients struct {
		Clients      int
		Away         string
		BadRowErrors []string `json:"bad_row_errors"`
	}
}

func (d *daemon) status(t *testing.T) (s status) {
	t.Helper()
	if code, body := d.post(t, "/v1/status", ""); code != 200 || json.Unmarshal([]byte(body), &s) != nil {
		t.Fatalf("/v1/status: %d %s", code, body)
	}
	return s
}

func (d *daemon) hasMetric(t *testing.T, line string) bool {
	t.Helper()
	_, text := d.post(t, "/metrics", "")
	return strings.Contains(text, "\n"+line+"\n")
}

// A limit is raised, lowered, broken and mended while the server runs: what was used stays used, and what is broken is refused.
func TestPoliciesChangeLive(t *testing.T) {
	rules := newRules(t)
	d := startDaemon(t, "memory", "--config", string(rules))
	if c := d.check(t, "/api", "k", 3); !c.Allowed || c.Limit != 5 || c.Remaining != 2 {
		t.Fatalf("at first: %+v", c)
	}
	peek := func() checked { return d.check(t, "/api", "k", 0) }

	rules.write(t, rulesWith("8/1h"))
	soon(t, d, "the limit is raised", func() bool { return peek().Limit == 8 })
	if c := peek(); c.Remaining != 5 {
		t.Errorf("raised: %+v, want 5 remaining", c)
	}
	rules.write(t, rulesWith("4/1h"))
	soon(t, d, "the limit is lowered", func() bool { return peek().Limit == 4 })
	if c := peek(); c.Remaining != 1 {
		t.Errorf("lowered: %+v, want 1 remaining", c)
	}
	if s := d.status(t); s.Config.Refused != "" || s.Config.Source != string(rules) {
		t.Errorf("status: %+v", s)
	}

	rules.write(t, strings.Replace(rulesWith("100/1h"), "limits", "limit", 1))
	soon(t, d, "the broken file is refused", func() bool { return d.status(t).Config.Refused != "" })
	if c := peek(); c.Limit != 4 {
		t.Errorf("of a broken file: %+v, want the limits before it", c)
	}
	want := fmt.Sprintf(`%s:3:61: policies[0].limit is not known; did you mean "limits"?`, rules)
	if s := d.status(t); !strings.HasPrefix(s.Config.Refused, want) {
		t.Errorf("status: %+v, want %s", s, want)
	}
	if !d.hasMetric(t, "weir_config_last_reload_successful 0") {
		t.Error("the metrics do not tell that the file was refused")
	}
	if code, body := d.post(t, "/readyz", ""); code != 200 || body != "ok\nwarning: the last change of the policies is refused\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
	if n := strings.Count(d.log.String(), "did you mean"); n != 1 {
		t.Errorf("the log tells %d times why, want once: %s", n, d.log)
	}

	rules.write(t, rulesWith("6/1h"))
	soon(t, d, "the file is mended", func() bool { return peek().Limit == 6 })
	soon(t, d, "the metrics tell so", func() bool { return d.hasMetric(t, "weir_config_last_reload_successful 1") })
	if !d.hasMetric(t, `weir_policy_decisions_total{policy="api",verdict="denied"} 0`) {
		t.Error("the metrics do not count the policies' decisions")
	}
	if code, body := d.post(t, "/readyz", ""); code != 200 || body != "ok\n" {
		t.Errorf("/readyz: %d %q", code, body)
	}
}

func TestHangupReadsThePoliciesAgain(t *testing.T) {
	rules := newRules(t)
	d := startDaemon(t, "memory", "--config", string(rules))
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	soon(t, d, "the log tells of a reload, although nothing has changed", func() bool { return strings.Contains(d.log.String(), "a change is in use") })
	if c := d.check(t, "/api", "k", 1); !c.Allowed {
		t.Errorf("after a hangup: %+v", c)
	}
}

// A client's plan is switched in the database while the server runs, and use carries over.
func TestPlansChangeLive(t *testing.T) {
	for kind, database := range clientDatabases {
		t.Run(kind, func(t *testing.T) {
			url := database(t)
			weir := func(args ...string) {
				t.Helper()
				if _, log, code := runProgram(append(args, "--database", url)...); code != exitOK {
					t.Fatal(log)
				}
			}
			weir("db", "migrate")
			weir("clients", "set", "bad", "--plan", "blocked")
			rules, snapshot := newRules(t), filepath.Join(t.TempDir(), "snapshot")
			t.Setenv("WEIR_CLIENTS", url)
			d := startDaemon(t, "memory", "--config", string(rules), "--clients-snapshot", snapshot)
			if c := d.check(t, "/api", "bad", 1); c.Allowed || c.Denied[0] != "api" || c.Limits[0].Plan != "blocked" {
				t.Errorf("who is blocked: %+v", c)
			}
			if c := d.check(t, "/api", "acme", 4); !c.Allowed || c.Remaining != 1 {
				t.Fatalf("without a plan: %+v", c)
			}
			weir("clients", "set", "acme", "--plan", "gold")
			soon(t, d, "the plan is in force", func() bool { return d.check(t, "/api", "acme", 0).Limit == 10 })
			if c := d.check(t, "/api", "acme", 0); c.Remaining != 6 {
				t.Errorf("with the plan: %+v, want 6 remaining", c)
			}
			weir("clients", "set", "acme", "--plan", "platinum")
			soon(t, d, "the row with the unknown plan is reported", func() bool {
				return strings.Contains(strings.Join(d.status(t).Clients.BadRowErrors, "\n"), "platinum")
			})
			if c := d.check(t, "/api", "acme", 0); c.Limit != 10 {
				t.Errorf("after a change that is refused: %+v", c)
			}
			if !d.hasMetric(t, "weir_clients_last_sync_successful 0") || !d.hasMetric(t, "weir_clients 2") {
				t.Error("the metrics do not tell of it")
			}
			weir("clients", "delete", "acme")
			soon(t, d, "the client is gone", func() bool { return d.check(t, "/api", "acme", 0).Limit == 5 })
			soon(t, d, "the metrics tell so", func() bool {
				return d.hasMetric(t, "weir_clients_last_sync_successful 1") && d.hasMetric(t, "weir_clients 1")
			})
			if c := d.check(t, "/api", "acme", 0); c.Remaining != 1 {
				t.Errorf("without the plan again: %+v, want 1 remaining", c)
			}
		})
	}
}

// With a snapshot a server starts while the database is away. Without one it does not.
func TestStartWithoutTheDatabase(t *testing.T) {
	e := testengine.Postgres(t)
	for _, args := range [][]string{{"db", "migrate"}, {"clients", "set", "bad", "--plan", "blocked"}} {
		if _, log, code := runProgram(append(args, "--database", e.URL())...); code != exitOK {
			t.Fatal(log)
		}
	}
	rules, snapshot := newRules(t), filepath.Join(t.TempDir(), "snapshot")
	args := []string{"--config", string(rules), "--clients", e.URL(), "--clients-snapshot", snapshot}
	first := startDaemon(t, "memory", args...)
	soon(t, first, "the snapshot is written", func() bool { _, err := os.Stat(snapshot); return err == nil })
	e.Kill(t)
	soon(t, first, "the server knows that the database is away", func() bool { return first.status(t).Clients.Away != "" })
	first.check(t, "/api", "bad", 1)
	d := startDaemon(t, "memory", args...)
	if c := d.check(t, "/api", "bad", 1); c.Allowed {
		t.Errorf("from the snapshot: %+v, want it denied", c)
	}
	if code, body := d.post(t, "/readyz", ""); code != 200 || !strings.Contains(body, "warning: the clients are those of the snapshot") {
		t.Errorf("/readyz: %d %q", code, body)
	}
	_, log, code := runProgram("serve", "--resp", "0", "--http", "0", "--config", string(rules), "--clients", e.URL())
	if code != exitError || !strings.Contains(log, "clients") || strings.Contains(log, "password") {
		t.Errorf("without a snapshot: exit code %d, %s", code, log)
	}
}

// When the engine is gone each policy does what it says.
func TestPoliciesWithoutTheEngine(t *testing.T) {
	e := testengine.Redis(t)
	d := startDaemon(t, withTimeout("redis", e.URL()), "--config", string(newRules(t)))
	for _, path := range []string{"/denies", "/allows", "/local"} {
		if c := d.check(t, path, "", 1); !c.Allowed || c.Failed {
			t.Errorf("%s, with the engine: %+v", path, c)
		}
	}
	e.Kill(t)
	for _, s := range []struct {
		path           string
		allowed, local bool
	}{
		{"/denies", false, false}, {"/allows", true, false}, {"/local", true, true}, {"/local", true, true}, {"/local", false, true}, {"/elsewhere", true, false},
	} {
		c := d.check(t, s.path, "", 1)
		if c.Allowed != s.allowed || c.Failed != (s.path != "/elsewhere") || s.local && !c.Limits[0].Local {
			t.Errorf("%s, without the engine: %+v", s.path, c)
		}
	}
	if got := d.ask(t, "WEIR.CHECK PATH /denies IP 192.0.2.7", "WEIR.CHECK PATH /allows IP 192.0.2.7"); !strings.HasPrefix(got[0], "[0 5 0 ") || !strings.HasPrefix(got[1], "[1 5 ") {
		t.Errorf("over RESP: %q", got)
	}
	if !d.hasMetric(t, `weir_policy_decisions_total{policy="denies",verdict="failed"} 2`) {
		t.Error("the metrics do not count the failures")
	}
	e.Start(t)
	soon(t, d, "the engine is back", func() bool { return !d.check(t, "/denies", "", 0).Failed })
	if c := d.check(t, "/local", "", 1); !c.Allowed || c.Limits[0].Local {
		t.Errorf("with the engine again: %+v", c)
	}
}

func TestServeRefusesBrokenPolicies(t *testing.T) {
	bad := file(t, "bad.yaml", "policies:\n  - name: a\n    key: all\n    limits: [often]\n  - nome: b\n")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--config", bad}, []string{bad + ":4:14: ", bad + ":5:5: "}},
		{[]string{"--config", "no.yaml"}, []string{"weir: --config no.yaml: no such file"}},
		{[]string{"--config", exampleConfig, "--clients", "mysql://u:secret@h/db"}, []string{"accepted: sqlite:"}},
		{[]string{"--config", exampleConfig, "--clients-snapshot", "s"}, []string{"--clients-snapshot s", "no database of clients"}},
	} {
		_, log, code := runProgram(append([]string{"serve", "--resp", "0", "--http", "0"}, c.args...)...)
		if code != exitError || strings.Contains(log, "secret") {
			t.Errorf("%q: exit code %d, %s", c.args, code, log)
		}
		for _, want := range c.want {
			if !strings.Contains(log, want) {
				t.Errorf("%q: %s\nhas no %s", c.args, log, want)
			}
		}
	}
}
