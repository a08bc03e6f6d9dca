package clients_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy/clients"
)

// away lets a database be away, and come back.
type away struct {
	url       string
	stop, run func(t *testing.T)
}

var outages = map[string]func(t *testing.T) away{
	"postgres": func(t *testing.T) away {
		s := testengine.Postgres(t)
		return away{s.URL(), func(t *testing.T) { s.Kill(t) }, func(t *testing.T) { s.Start(t) }}
	},
	"sqlite": func(t *testing.T) away {
		url := newSQLite(t)
		path := strings.TrimPrefix(url, "sqlite:")
		move := func(from, to string) func(t *testing.T) {
			return func(t *testing.T) {
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
			}
		}
		return away{url, move(path, path+".away"), move(path+".away", path)}
	},
}

// With the database away the clients stay; when it is back, what changed is seen. Meanwhile a service can start from the snapshot, and from nothing it can't.
func TestDatabaseAway(t *testing.T) {
	for kind, start := range outages {
		t.Run(kind, func(t *testing.T) {
			a := start(t)
			if _, err := clients.Migrate(t.Context(), a.url); err != nil {
				t.Fatal(err)
			}
			d := open(t, a.url)
			set(t, d, clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Limits: limits("1000/1m")})
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "clients.snapshot")
			f := follow(t, a.url, clients.Options{Snapshot: path})
			until(t, "the snapshot is written", func() bool { return !f.Status().Saved.IsZero() })

			a.stop(t)
			until(t, "it is away", func() bool { return f.Status().Away != "" })
			if s := f.Status(); s.Since.IsZero() || s.Clients != 2 || has(f, "acme") != "gold" || has(f, "umbrella") != "1000/1m" {
				t.Errorf("%+v", s)
			}
			var log bytes.Buffer
			second := follow(t, a.url, clients.Options{Snapshot: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
			second.Close() // so that the log can be read
			if s := second.Status(); s.FromSnapshot.IsZero() || s.Away == "" || s.Clients != 2 || has(second, "acme") != "gold" || has(second, "umbrella") != "1000/1m" {
				t.Errorf("%+v", s)
			}
			if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "age=") {
				t.Errorf("logged %s", text)
			}
			third := follow(t, a.url, clients.Options{Snapshot: path})
			if kind == "postgres" { // a file would be made anew
				if _, err := tryFollow(t, a.url, clients.Options{}); err == nil || !strings.Contains(err.Error(), "postgres://postgres@127.0.0.1") {
					t.Errorf("without snapshot: %v", err)
				}
			}
			if _, err := tryFollow(t, a.url, clients.Options{Snapshot: damaged(t, path)}); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Errorf("with a damaged snapshot: %v", err)
			}

			a.run(t)
			run(t, a.url, `UPDATE weir_clients SET plan = 'silver' WHERE client = 'acme'`)
			for _, f := range []*clients.Follower{f, third} {
				until(t, "it is back", func() bool { s := f.Status(); return s.Away == "" && has(f, "acme") == "silver" })
				if s := f.Status(); !s.Since.IsZero() || !s.FromSnapshot.IsZero() {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// damaged returns the path of a copy of a file, with a byte of it changed.
func damaged(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)*2/3] ^= 0x10
	path += ".damaged"
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Close writes the snapshot if that was not done yet, for its user alone, and leaves no other file.
func TestSnapshotFile(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold", From: time.Unix(1000, 0), Until: time.Unix(1<<33, 0)})
		path := filepath.Join(t.TempDir(), "clients.snapshot")
		f := follow(t, url, clients.Options{Snapshot: path})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info, err)
		}
		rest, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
		if len(rest) != 0 || err != nil {
			t.Errorf("left %q, %v", rest, err)
		}
	})
}

// A service that started from the snapshot is up with the database as soon as that is back, also if nothing was changed in it.
func TestBackUnchanged(t *testing.T) {
	a := outages["sqlite"](t)
	set(t, open(t, a.url), clients.Client{Name: "acme", Plan: "gold"})
	path := filepath.Join(t.TempDir(), "clients.snapshot")
	follow(t, a.url, clients.Options{Snapshot: path}).Close()
	a.stop(t)
	f := follow(t, a.url, clients.Options{Snapshot: path})
	if s := f.Status(); s.FromSnapshot.IsZero() {
		t.Errorf("%+v", s)
	}
	a.run(t)
	until(t, "it is back", func() bool { return f.Status().Away == "" })
	until(t, "the snapshot is confirmed", func() bool { return f.Status().FromSnapshot.IsZero() })
	if s := f.Status(); s.Changes != 0 || has(f, "acme") != "gold" {
		t.Errorf("all was read anew: %+v", s)
	}
}

// A snapshot of another database is used, as the URL of one may change, but that is said.
func TestSnapshotOfAnotherDatabase(t *testing.T) {
	url, path := newSQLite(t), filepath.Join(t.TempDir(), "clients.snapshot")
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"})
	follow(t, url, clients.Options{Snapshot: path}).Close()
	var log bytes.Buffer
	f := follow(t, "postgres://weir@127.0.0.1:1/away", clients.Options{Snapshot: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
	f.Close()
	if text := log.String(); !strings.Contains(text, `of another database`) || !strings.Contains(text, "database=postgres://weir@127.0.0.1:1/away") || !strings.Contains(text, "of=\""+url) {
		t.Errorf("logged %s", text)
	}
	if has(f, "acme") != "gold" {
		t.Errorf("acme has %q", has(f, "acme"))
	}
}

// A snapshot that can't be written is shown, and harms nothing.
func TestSnapshotUnwritable(t *testing.T) {
	url := newSQLite(t)
	f := follow(t, url, clients.Options{Snapshot: filepath.Join(t.TempDir(), "no", "such", "folder")})
	until(t, "the error is shown", func() bool { return f.Status().SaveError != "" })
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"})
	until(t, "the change is in effect", func() bool { return has(f, "acme") == "gold" })
}

// A file of SQLite that takes the place of another is read, whatever its numbers are. The journal of the other has to go with it, as always with SQLite.
func TestFileReplaced(t *testing.T) {
	url, other := newSQLite(t), newSQLite(t)
	for u, plan := range map[string]string{url: "gold", other: "silver"} {
		d := open(t, u)
		set(t, d, clients.Client{Name: "acme", Plan: plan})
		d.Close()
	}
	f := follow(t, url, clients.Options{})
	run(t, url, `UPDATE weir_clients SET plan = 'bronze'`)
	until(t, "the file is followed", func() bool { return has(f, "acme") == "bronze" })
	path := strings.TrimPrefix(url, "sqlite:")
	for _, gone := range []string{path + "-wal", path + "-shm"} {
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(strings.TrimPrefix(other, "sqlite:"), path); err != nil {
		t.Fatal(err)
	}
	until(t, "the other file is read", func() bool { return has(f, "acme") == "silver" })
}

// A PostgreSQL that hangs is away, and lets nobody wait.
func TestDatabaseHangs(t *testing.T) {
	s := testengine.Postgres(t)
	if _, err := clients.Migrate(t.Context(), s.URL()); err != nil {
		t.Fatal(err)
	}
	set(t, open(t, s.URL()), clients.Client{Name: "acme", Plan: "gold"})
	f := follow(t, s.URL(), clients.Options{})
	s.Pause(t)
	until(t, "it is away", func() bool { return f.Status().Away != "" })
	if has(f, "acme") != "gold" {
		t.Errorf("acme has %q", has(f, "acme"))
	}
	s.Resume(t)
	run(t, s.URL(), `UPDATE weir_clients SET plan = 'silver'`)
	until(t, "it is back", func() bool { return has(f, "acme") == "silver" })
}
