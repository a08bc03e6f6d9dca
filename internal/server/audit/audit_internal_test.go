package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

func opened(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, slog.New(slog.DiscardHandler), guard.NewPanics(nil))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func records(t *testing.T, path string) (list []Record) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		list = append(list, r)
	}
	return list
}

func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 { // appends
		l := opened(t, path)
		l.Write(Record{Event: Refund, User: "alice", From: "192.0.2.1:7", Key: "sk_live_0123456789abcdef", Name: "a\nb", Units: 3, Result: OK})
		l.Write(Record{Event: Reset, Key: "\xff", Detail: strings.Repeat("x", 1000), Result: Failed})
		if err := l.Close(); err != nil || l.Lost() != 0 {
			t.Errorf("%v, %d lost", err, l.Lost())
		}
	}
	list := records(t, path)
	if len(list) != 4 {
		t.Fatalf("%d records", len(list))
	}
	if r := list[0]; r.Time.IsZero() || r.User != "alice" || r.Name != "a\nb" || !strings.HasPrefix(r.Key, "sk_l…#") || r.Units != 3 {
		t.Errorf("%+v", r)
	}
	if r := list[1]; len(r.Detail) != maxText || !strings.HasPrefix(r.Key, "#") {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	var none *Log
	none.Write(Record{})
	if none.Reopen() != nil || none.Close() != nil || none.Lost() != 0 {
		t.Error("no log has an error")
	}
}

// A flood of refused logins is a few records, with the number of the others.
func TestFloodOfLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l := opened(t, path)
		for second := range 60 {
			for range 1000 {
				l.Write(Record{Event: Login, User: fmt.Sprint(second), Result: Refused})
			}
			l.Write(Record{Event: Reset, Result: OK})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var logins, resets int
		var count int64
		for _, r := range records(t, path) {
			switch r.Event {
			case Reset:
				resets++
			case Login:
				logins++
				count += max(1, r.Count)
			}
		}
		if resets != 60 || logins > 80 || count != 60_000 {
			t.Errorf("%d resets, %d records of %d logins", resets, logins, count)
		}
	})
}

// A flood of refused logins takes no place in the queue from other records.
func TestFloodOfLoginsLosesNothing(t *testing.T) {
	l := &Log{queue: make(chan Record, maxQueued)} // no writer: the queue does not empty
	for range 2 * maxQueued {
		l.Write(Record{Event: Login, Result: Refused})
	}
	for range maxQueued - maxLogins {
		l.Write(Record{Event: Refund, Result: OK})
	}
	if l.Lost() != 0 || len(l.queue) != maxQueued {
		t.Errorf("%d records are lost, %d wait", l.Lost(), len(l.queue))
	}
}

// The file can be moved away and opened again. A file that can't be written loses records, and no
// more: they are counted, and the next line is whole.
func TestReopenAndLostRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		l, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)), guard.NewPanics(nil))
		if err != nil {
			t.Fatal(err)
		}
		l.Write(Record{Event: Reset, Name: "old"})
		synctest.Wait()
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		l.Write(Record{Event: Reset, Name: "old"})
		synctest.Wait()
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
		l.Write(Record{Event: Reset, Name: "new"})
		synctest.Wait()
		if a, b := records(t, path+".1"), records(t, path); len(a) != 2 || len(b) != 1 || b[0].Name != "new" {
			t.Errorf("%v, %v", a, b)
		}
		_ = l.file.Close() // as a full disk fails
		for range 100 {
			l.Write(Record{Event: Reset, Name: "lost"})
		}
		synctest.Wait()
		if l.Lost() != 100 || strings.Count(log.String(), "records are lost") != 1 {
			t.Errorf("%d lost; the log:\n%s", l.Lost(), log.String())
		}
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(loginTime)
		synctest.Wait()
		if list := records(t, path); len(list) != 2 || list[1].Event != Lost || list[1].Count != 100 {
			t.Errorf("%+v", list)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := l.Reopen(); err == nil {
			t.Error("a directory is opened")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{t.TempDir(): "no regular file", filepath.Join(path, "x"): ""}
	if runtime.GOOS != "windows" {
		refused[path] = "mode 0644"
	}
	for path, want := range refused {
		if _, err := Open(path, slog.New(slog.DiscardHandler), guard.NewPanics(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A writer that is stuck, as on a disk that hangs, holds up nobody.
func TestWriteDoesNotWait(t *testing.T) {
	l := &Log{queue: make(chan Record, maxQueued)} // nobody writes
	for range maxQueued + 7 {
		l.Write(Record{Event: Reset})
	}
	if l.Lost() != 7 {
		t.Errorf("%d lost", l.Lost())
	}
}
