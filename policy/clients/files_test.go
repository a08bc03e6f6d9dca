//go:build unix

package clients_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirlimit/weir/policy/clients"
)

// Files with the names of clients are for their user alone, SQLite's journals included, under any
// umask.
func TestFilesAreForTheirUser(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	url := newSQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	snapshot := filepath.Join(filepath.Dir(path), "clients.snapshot")
	var log bytes.Buffer
	f := follow(t, url, clients.Options{Snapshot: snapshot, Log: slog.New(slog.NewTextHandler(&log, nil))})
	d := open(t, url)
	set(t, d, clients.Client{Name: "acme", Plan: "gold"})
	until(t, "the snapshot is written", func() bool { return !f.Status().Saved.IsZero() && has(f, "acme") == "gold" })
	seen := map[string]bool{}
	for _, name := range []string{path, path + "-wal", path + "-shm", snapshot} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		seen[filepath.Base(name)] = true
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, info.Mode().Perm())
		}
	}
	all, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if !seen[file.Name()] {
			t.Errorf("%s is left", file.Name())
		}
	}
	if files := d.Exposed(); len(files) != 0 {
		t.Errorf("exposed: %q", files)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "chmod") {
		t.Errorf("logged %s", &log)
	}
}

// A file with wider permissions is used, with a warning.
func TestExposedFiles(t *testing.T) {
	url := newSQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"})
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	f := follow(t, url, clients.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "chmod 600") != 1 || !strings.Contains(text, filepath.Base(path)) || has(f, "acme") != "gold" {
		t.Errorf("logged %s", text)
	}
}

// Concurrent calls of Open make one file.
func TestManyMakeTheFile(t *testing.T) {
	url := newSQLite(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			d, err := clients.Open(t.Context(), url)
			if err == nil {
				_, err = d.Put(t.Context(), func(yield func(clients.Client, error) bool) { yield(clients.Client{Name: "acme", Plan: "gold"}, nil) })
			}
			if err == nil {
				err = d.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c, ok, err := open(t, url).Get(t.Context(), "acme"); !ok || err != nil || c.Plan != "gold" {
		t.Errorf("%+v, %v, %v", c, ok, err)
	}
}
