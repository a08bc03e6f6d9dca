package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/testengine"
)

// clientDatabases are databases without tables.
var clientDatabases = map[string]func(t *testing.T) string{
	"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "clients.db") },
	"postgres": func(t *testing.T) string { return testengine.Postgres(t).URL() },
}

// A step is a run of the program, and what it should print.
type step struct {
	args string // with spaces between
	code int
	want []string // parts of what it prints, "" for nothing at all
}

func TestClients(t *testing.T) {
	for kind, database := range clientDatabases {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("WEIR_CLIENTS", database(t))
			missing := map[string][]string{"sqlite": {"there is no such file; weir db migrate makes it"}, "postgres": {"run weir db migrate"}}[kind]
			for _, s := range []step{
				{"clients list", exitError, missing},
				{"clients set acme --plan gold", exitError, missing},
				{"clients import clients_test.go", exitError, missing},
				{"db migrate", exitOK, []string{"migration 1 (clients)"}},
				{"db migrate", exitOK, []string{"nothing to do"}},
				{"clients list", exitOK, []string{""}},
				{"clients set acme --plan gold --note pays --until 2030-01-01", exitOK, []string{""}},
				{"clients set umbrella --limit 1000/1m --limit 50/1s --policy api --limit login:5/1s --from 2026-06-01T12:30:00+02:00", exitOK, []string{""}},
				{"clients set umbra --plan silver", exitOK, []string{""}},
				{"clients get acme", exitOK, []string{"acme ", "#822b33ad ", "plan gold", "until 2030-01-01T00:00:00Z", "# pays"}},
				{"clients get umbrella --json", exitOK, []string{`{"client":"umbrella","limits":"api: 1000/1m; 50/1s\nlogin: 5/1s","valid_from":"2026-06-01T10:30:00Z","updated_at":"`, `"masked":"#`}},
				{"clients list --json --prefix umbr --after umbra", exitOK, []string{`{"client":"umbrella"`}},
				{"clients list --plan silver", exitOK, []string{"umbra   "}},
				{"clients list --most 1", exitOK, []string{"acme  "}},
				{"clients list --most=-1", exitError, []string{"--most is -1; accepted: 1 or more"}},
				{"clients get nobody", exitError, []string{`client "nobody" is not in`, kind}},
				{"clients set acme", exitError, []string{"neither plan nor limits; accepted: one of both"}},
				{"clients set acme --plan gold --limit 1/1s", exitError, []string{"a plan and limits; accepted: one of both"}},
				{"clients set acme --limit often", exitError, []string{"limit has", "accepted:"}},
				{"clients set acme --plan gold --from soon", exitUsage, []string{"--from", `"soon"`, "accepted: 2026-06-01"}},
				{"clients set acme --plan gold --from 2030-01-01 --until 2029-01-01", exitError, []string{"accepted: a time after 2030-01-01"}},
				{"clients delete acme nobody", exitOK, []string{"1 of 2 deleted"}},
				{"clients get acme", exitError, []string{"is not in"}},
			} {
				checkStep(t, s)
			}
		})
	}
}

func checkStep(t *testing.T, s step) {
	t.Helper()
	out, log, code := runProgram(strings.Fields(s.args)...)
	if code != s.code {
		t.Errorf("%s: exit code %d, want %d: %s", s.args, code, s.code, log)
	}
	for _, part := range s.want {
		if part == "" && out+log != "" || !strings.Contains(out+log, part) {
			t.Errorf("%s printed %q, want %q", s.args, out+log, part)
		}
	}
}

// What list --json prints can be imported, whole or not at all.
func TestClientsImport(t *testing.T) {
	for kind, database := range clientDatabases {
		t.Run(kind, func(t *testing.T) {
			url := database(t)
			t.Setenv("WEIR_CLIENTS", url)
			checkStep(t, step{"db migrate", exitOK, []string{"migration 1"}})
			var lines strings.Builder
			for i := range 30 {
				fmt.Fprintf(&lines, "{\"client\":\"c%02d\",\"plan\":\"gold\",\"note\":\"<%d>\"}\n", i, i)
			}
			lines.WriteString("\n{\"client\":\"c07\",\"limits\":\"api: 5/1s\"}\n") // again: the last counts
			file := filepath.Join(t.TempDir(), "clients.jsonl")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(lines.String())
			checkStep(t, step{"clients import " + file, exitOK, []string{"31 set"}})
			checkStep(t, step{"clients get c07", exitOK, []string{"api: 5/1s"}})
			all, _, _ := runProgram("clients", "list", "--json")
			if strings.Count(all, "\n") != 30 || !strings.Contains(all, `"note":"<29>"`) {
				t.Errorf("listed %s", all)
			}
			write(all)
			checkStep(t, step{"clients import " + file, exitOK, []string{"30 set"}})
			for broken, want := range map[string]string{
				`{"client":"d","plan":"gold"} {"client":"e","plan":"gold"}`:         "line 2: ",
				`{"client":"d","plan":"gold","limit":"5/1s"}`:                       `unknown field "limit"`,
				`{"client":"d` + "\xff" + `","plan":"gold"}`:                        "accepted: JSON in UTF-8",
				`{"client":"d","limits":"5 per second"}`:                            "line 2: client \"d\": ",
				`{"client":"","plan":"gold"}`:                                       "accepted: 1 to 1024 bytes",
				`{"client":"d","plan":"gold","note":"` + strings.Repeat("x", 1<<17): "line 2: ",
			} {
				write(`{"client":"c00","plan":"silver"}` + "\n" + broken + "\n")
				checkStep(t, step{"clients import " + file, exitError, []string{want}})
			}
			checkStep(t, step{"clients get c00", exitOK, []string{"plan gold"}})
		})
	}
}

func TestDBMigratePrint(t *testing.T) {
	out, _, code := runProgram("db", "migrate", "--print", "--database", "postgres://weir:h0rse@db/limits")
	if code != exitOK || !strings.HasPrefix(out, "BEGIN;") || !strings.HasSuffix(out, "COMMIT;\n") || !strings.Contains(out, "CREATE TABLE weir_clients (") {
		t.Errorf("exit code %d, printed %s", code, out)
	}
	_, log, code := runProgram("clients", "list", "--database", "postgres://weir:h0rse@127.0.0.1:1/limits")
	if code != exitError || strings.Contains(log, "h0rse") || !strings.Contains(log, "postgres://weir@127.0.0.1:1/limits") {
		t.Errorf("exit code %d, said %s", code, log)
	}
	_, log, code = runProgram("clients", "list", "--database=")
	if code == exitOK || !strings.Contains(log, "accepted: sqlite:") {
		t.Errorf("exit code %d, said %s", code, log)
	}
}

// With the policies at hand, a client that they would refuse is not written.
func TestClientsChecked(t *testing.T) {
	t.Setenv("WEIR_CLIENTS", "sqlite:"+filepath.Join(t.TempDir(), "clients.db"))
	checkStep(t, step{"db migrate", exitOK, []string{"migration 1"}})
	config := filepath.Join(t.TempDir(), "weir.yaml")
	text := "policies:\n  - name: api\n    key: [client_ip]\n    limits: [\"100/1m\"]\n    plans: {gold: [\"1000/1m\"]}\n"
	file := filepath.Join(t.TempDir(), "clients.jsonl")
	lines := `{"client":"a","plan":"gold"}` + "\n" + `{"client":"b","plan":"gould"}` + "\n"
	for name, content := range map[string]string{config: text, file: lines} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []step{
		{"clients set acme --plan gold --config " + config, exitOK, []string{""}},
		{"clients set acme --plan gould --config " + config, exitError, []string{`client "acme": `, "gould"}},
		{"clients set acme --plan gould --config " + config + ".not", exitUsage, []string{"weir.yaml.not"}},
		{"clients import " + file + " --config " + config, exitError, []string{`line 2: `, `client "b": `, "gould"}},
		{"clients list --json", exitOK, []string{`{"client":"acme","plan":"gold"`}},
		{"clients get a", exitError, []string{"is not in"}},
		{"clients set wrong --plan gould", exitOK, []string{""}},
		{"clients set over --plan gould --until 2020-01-01", exitOK, []string{""}},
		{"clients check", exitOK, []string{""}},
		{"clients check --config " + config, exitError, []string{"wrong  ", "plan gould MAKES NO SENSE: weir: plan \"gould\" is of no policy; accepted: gold", "clients that make no sense: 1"}},
		{"clients check --json --config " + config, exitError, []string{`{"client":"wrong","plan":"gould"`, `"error":"weir: plan`}},
		{"policy check --clients " + os.Getenv("WEIR_CLIENTS") + " " + config, exitError, []string{"clients that make no sense: 1, the first: client #", "gould", "weir clients check"}},
	} {
		checkStep(t, s)
	}
}

// Names that would be read as others are refused, everywhere.
func TestClientsRefuseBytes(t *testing.T) {
	t.Setenv("WEIR_CLIENTS", "sqlite:"+filepath.Join(t.TempDir(), "clients.db"))
	checkStep(t, step{"db migrate", exitOK, []string{"migration 1"}})
	checkStep(t, step{"clients set a\ufffd --plan gold", exitOK, []string{""}})
	for _, args := range []string{
		"clients set a\xff --plan gold", "clients set a --plan g\xff", "clients set a --limit g\xff", "clients set a --plan gold --note=\xff", "clients set a --policy \xff --limit 1/1s",
		"clients get a\xff", "clients get a\x00", "clients delete b a\xff", "clients list --plan=\xff", "clients list --prefix \xff", "clients list --after \xff", "db migrate --database=sqlite:\xff",
	} {
		checkStep(t, step{args, exitUsage, []string{"accepted: UTF-8 without NUL"}})
	}
	checkStep(t, step{"clients list", exitOK, []string{"a\ufffd"}})
}

// A row that makes no sense is shown with what is wrong, and hides no other.
func TestClientsShowBrokenRows(t *testing.T) {
	for kind, database := range clientDatabases {
		t.Run(kind, func(t *testing.T) {
			url := database(t)
			t.Setenv("WEIR_CLIENTS", url)
			for _, args := range []string{"db migrate", "clients set a --plan gold", "clients set b --limit 1/1s", "clients set c --plan gold"} {
				checkStep(t, step{args, exitOK, nil})
			}
			driver, name := "pgx", url
			if kind == "sqlite" {
				driver, name = "sqlite", strings.TrimPrefix(url, "sqlite:")
			}
			db, err := sql.Open(driver, name)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), `UPDATE weir_clients SET limits = 'api: <many>' WHERE client = 'b'`); err != nil {
				t.Fatal(err)
			}
			const reason = `weir: limit`
			for _, s := range []step{
				{"clients list", exitError, []string{"a    ", "\nb  ", `limits "api: <many>" MAKES NO SENSE: ` + reason, "\nc  ", "clients that make no sense: 1"}},
				{"clients list --json", exitError, []string{`{"client":"a"`, `{"client":"b","limits":"api: <many>"`, `"error":"weir: limit`, `{"client":"c"`, "clients that make no sense: 1"}},
				{"clients get b", exitError, []string{`limits "api: <many>" MAKES NO SENSE: ` + reason}},
				{"clients get b --json", exitError, []string{`{"client":"b","limits":"api: <many>"`, `"error":"`}},
				{"clients get c", exitOK, []string{"plan gold"}},
				{"clients check", exitError, []string{`b  `, ` limits "api: <many>" MAKES NO SENSE: ` + reason, "clients that make no sense: 1"}},
				{"clients delete b", exitOK, []string{"1 of 1 deleted"}},
				{"clients list", exitOK, []string{"c   "}},
				{"clients check", exitOK, []string{""}},
			} {
				checkStep(t, s)
			}
		})
	}
}
