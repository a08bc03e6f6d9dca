package clients_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir/policy/clients"
)

// Of eight that migrate at one time, one does it, and all find it done.
func TestConcurrentMigrations(t *testing.T) {
	for kind, create := range kinds {
		t.Run(kind, func(t *testing.T) {
			for range 5 {
				url := create(t)
				var steps atomic.Int64
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						taken, err := clients.Migrate(context.Background(), url)
						if err != nil {
							t.Error(err)
						}
						steps.Add(int64(len(taken)))
						d, err := clients.Open(context.Background(), url)
						if err != nil {
							t.Error(err)
							return
						}
						d.Close()
					})
				}
				wg.Wait()
				if n := steps.Load(); n != 1 {
					t.Errorf("%d steps were taken, want 1", n)
				}
			}
		})
	}
}

// What is printed does what Migrate does.
func TestScript(t *testing.T) {
	for kind, create := range kinds {
		t.Run(kind, func(t *testing.T) {
			url := create(t)
			script, err := clients.Script(url)
			if err != nil {
				t.Fatal(err)
			}
			if kind == "sqlite" {
				if err := os.WriteFile(strings.TrimPrefix(url, "sqlite:"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run(t, url, script)
			if steps, err := clients.Migrate(t.Context(), url); len(steps) != 0 || err != nil {
				t.Errorf("%v, %v", steps, err)
			}
			set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"})
		})
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		run(t, url, `INSERT INTO weir_clients_migrations (number) VALUES (9)`)
		_, migrating := clients.Migrate(t.Context(), url)
		_, opening := clients.Open(t.Context(), url)
		_, following := tryFollow(t, url, clients.Options{})
		for _, err := range []error{migrating, opening, following} {
			if err == nil || !strings.Contains(err.Error(), "of version 9, of a newer weir; this one knows up to 1") {
				t.Error(err)
			}
		}
	})
}

// PostgreSQL is not touched by who only opens it.
func TestUnmigratedPostgres(t *testing.T) {
	url := newPostgres(t)
	if _, err := clients.Open(t.Context(), url); err == nil || !strings.Contains(err.Error(), "run weir db migrate") {
		t.Error(err)
	}
	if _, err := tryFollow(t, url, clients.Options{}); err == nil || !strings.Contains(err.Error(), "run weir db migrate") {
		t.Error(err)
	}
}

// The service needs to read three tables, and who edits to write one.
func TestRights(t *testing.T) {
	owner := newPostgres(t)
	if _, err := clients.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	_, schema, _ := strings.Cut(owner, "search_path=")
	as := func(role string) string { return strings.Replace(owner, "postgres@", role+schema+"@", 1) }
	roles := func(statements string) {
		run(t, owner, strings.NewReplacer("reader", "reader"+schema, "editor", "editor"+schema, "SCHEMA own", "SCHEMA "+schema).Replace(statements))
	}
	roles(`CREATE ROLE reader LOGIN; CREATE ROLE editor LOGIN; GRANT USAGE ON SCHEMA own TO reader, editor`)
	reader, editor := as("reader"), as("editor")
	if _, err := tryFollow(t, reader, clients.Options{}); err == nil || !strings.Contains(err.Error(), "GRANT SELECT ON weir_clients,") {
		t.Error(err)
	}
	roles(`GRANT SELECT ON weir_clients, weir_clients_changes, weir_clients_migrations TO reader;
		GRANT SELECT, INSERT, UPDATE, DELETE ON weir_clients TO editor; GRANT SELECT ON weir_clients_migrations TO editor`)
	f := follow(t, reader, clients.Options{})
	d := open(t, editor)
	set(t, d, clients.Client{Name: "acme", Plan: "gold"})
	until(t, "the editor's change is seen", func() bool { return has(f, "acme") == "gold" })
	if _, err := d.Delete(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	until(t, "the editor's deletion is seen", func() bool { return has(f, "acme") == "" })
}

// A file that is looked at is not made.
func TestOpenExisting(t *testing.T) {
	url := newSQLite(t)
	if _, err := clients.OpenExisting(t.Context(), url); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Error(err)
	}
	if _, err := os.Stat(strings.TrimPrefix(url, "sqlite:")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	open(t, url).Close()
	d, err := clients.OpenExisting(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

// No error shows a password, or what may be a part of one.
func TestURLsThatAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"":                                  "empty; accepted: sqlite:file",
		"clients.db":                        "accepted: sqlite:file",
		"redis://u:zebra9@h/":               "accepted: sqlite:file",
		"zebra9":                            "accepted: sqlite:file",
		"postgre://u:zebra9@h/d":            "did you mean postgres:?; accepted: sqlite:file",
		"sqllite:clients.db":                "did you mean sqlite:?; accepted: sqlite:file",
		"sqlite:":                           "names no file",
		"sqlite::memory:":                   "names no file",
		"sqlite:///":                        "names no file",
		"sqlite://clients.db":               `has the host "clients.db"`,
		"sqlite:/no/such/folder/db":         "its folder is not there",
		"postgres:u:zebra9@h/d":             "accepted: postgres://",
		"postgres://u:zebra9@x@h/d":         "%40",
		"postgres://u:zeb/ra9@h/d":          "%2F",
		"postgres://u:%zzzebra9@h/d":        "accepted: postgres://",
		"postgres://u:zebra9@h/d?sslmode=x": "accepted: postgres://",
		"postgres://u:zebra9@127.0.0.1:1/d": "postgres://u@127.0.0.1:1/d",
	} {
		_, err := clients.Open(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ra9") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
		if _, err := tryFollow(t, url, clients.Options{}); err == nil || strings.Contains(err.Error(), "ra9") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
