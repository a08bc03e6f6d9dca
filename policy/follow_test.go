package policy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
)

// A lockedBuffer can be written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.b.String(), text)
}

// followed is a set that follows a file.
type followed struct {
	*policy.Set
	t    *testing.T
	path string
	log  lockedBuffer
}

func follow(t *testing.T, path string) *followed {
	t.Helper()
	f := &followed{t: t, path: path}
	s, err := policy.Load(t.Context(), path, policy.Options{Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	f.Set = s
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Follow(ctx, path) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow ended with %v", err)
		}
	})
	return f
}

// until returns when a condition holds. It has no deadline but that of the test binary.
func (f *followed) until(what string, ok func() bool) {
	f.t.Helper()
	f.t.Logf("waiting for: %s", what)
	for !ok() {
		time.Sleep(time.Millisecond)
	}
}

func (f *followed) capacity() int64 {
	f.t.Helper()
	zero := int64(0)
	r := request("GET /")
	r.Cost = &zero
	return check(f.t, f.Set, r).Limit
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func windowOf(count string) string {
	return "policies: [{name: a, key: client_ip, limits: [fixed-window " + count + "/24h]}]\n"
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, windowOf("10"))
	f := follow(t, path)
	check(t, f.Set, request("GET /"))

	write(t, path, windowOf("20")) // written anew
	f.until("raised", func() bool { return f.capacity() == 20 })
	if d := check(t, f.Set, request("GET /")); d.Remaining != 18 {
		t.Errorf("there remain %d, want 18: what was used stays used", d.Remaining)
	}

	write(t, path, windowOf("0")) // broken
	f.until("refused", func() bool { return f.Status().Config.Err != nil })
	status := f.Status()
	if f.capacity() != 20 || !strings.Contains(status.Config.Err.Error(), path+":1:47: policies[0].limits[0]") || status.Config.Source != path || status.Policies != 1 {
		t.Errorf("of a broken file the status is %+v", status)
	}
	write(t, path+".new", windowOf("30")) // renamed over
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	f.until("renamed", func() bool { return f.capacity() == 30 })
	if err := f.Status().Config.Err; err != nil {
		t.Errorf("the error stays: %v", err)
	}
	if n := f.log.count("refused"); n != 1 {
		t.Errorf("the log has %d refusals, want 1", n)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.until("removed", func() bool { return f.Status().Config.Err != nil })
	if !errors.Is(f.Status().Config.Err, os.ErrNotExist) || f.capacity() != 30 {
		t.Errorf("without a file the status is %+v", f.Status())
	}
	write(t, path, windowOf("40"))
	f.until("there again", func() bool { return f.capacity() == 40 })
}

// As Kubernetes does: the file is a link into a directory that is a link, which comes to point elsewhere.
func TestFollowThroughLinks(t *testing.T) {
	dir := t.TempDir()
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, v, "weir.yaml"), windowOf(v+"0"))
	}
	link("1", "data")
	link("data/weir.yaml", "weir.yaml")
	f := follow(t, filepath.Join(dir, "weir.yaml"))
	link("2", "next")
	if err := os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	f.until("swapped", func() bool { return f.capacity() == 20 })
}

// What changes between Load and Follow is seen.
func TestFollowSeesWhatChangedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, windowOf("10"))
	s, err := policy.Load(t.Context(), path, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, windowOf("20"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = s.Follow(ctx, path) }()
	f := &followed{Set: s, t: t}
	f.until("seen", func() bool { return f.capacity() == 20 })
}

// A file that lacks a plan that clients have is taken when they no longer have it, though it has not changed since.
func TestFollowTriesAgainWithOtherClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, "policies: [{name: a, key: client_ip, limits: [10/24h], plans: {gold: deny}}]")
	f := follow(t, path)
	if err := f.UseClients(staticClients{"k": plan("gold")}); err != nil {
		t.Fatal(err)
	}
	write(t, path, windowOf("20"))
	f.until("refused", func() bool { return f.Status().Config.Err != nil })
	if f.capacity() != 10 {
		t.Error("a file without a plan that a client has is in use")
	}
	if err := f.UseClients(nil); err != nil {
		t.Fatal(err)
	}
	f.until("taken", func() bool { return f.capacity() == 20 })
	if n := f.log.count("refused"); n != 1 {
		t.Errorf("the log has %d refusals, want 1", n)
	}
}

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, path, windowOf("10"))
	var log lockedBuffer
	s, err := policy.Load(t.Context(), path, policy.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{Set: s, t: t}
	write(t, path, "policies: [{}]")
	if err := s.Reload(path); err == nil || f.capacity() != 10 || s.Status().Config.Err == nil {
		t.Errorf("a broken file is taken, error %v", err)
	}
	if err := s.Reload(path); err == nil || log.count("was refused;") != 1 || log.count("was refused again;") != 1 {
		t.Errorf("a file that is still broken: error %v, want one, and a line in the log for each Reload", err)
	}
	write(t, path, windowOf("20"))
	if err := s.Reload(path); err != nil || f.capacity() != 20 || s.Status().Config.Err != nil {
		t.Errorf("error %v, capacity %d", err, f.capacity())
	}
}
