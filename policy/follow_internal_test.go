package policy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A moodyStore refuses limits for a while.
type moodyStore struct{ refuses bool }

func (s *moodyStore) Bind(store.Spec) (store.Binding, error) {
	if s.refuses {
		return nil, errors.New("not now")
	}
	return s, nil
}

func (*moodyStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, nil
}

// A file that was refused is tried again after ten seconds, or with other clients, though it has not changed, and one that is taken is not.
func TestAFileIsTriedAgainWhenTheReasonMayBeGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	write := func(limit string) {
		if err := os.WriteFile(path, []byte("policies: [{name: a, key: all, limits: ["+limit+"]}]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		moody := &moodyStore{}
		write("1/1s")
		s, err := Load(t.Context(), path, Options{Store: moody})
		if err != nil {
			t.Fatal(err)
		}
		f := newFollower(s, path)
		look := func(want string) {
			t.Helper()
			if f.look(t.Context()) { // a second time, if it has changed
				time.Sleep(steady)
				f.look(t.Context())
			}
			if got := s.Config().Policies[0].Limits[0].Limit; got != want {
				t.Errorf("the limit is %s, want %s", got, want)
			}
		}
		write("2/1s")
		moody.refuses = true
		look("1/1s")
		moody.refuses = false
		time.Sleep(again - time.Millisecond)
		look("1/1s")
		time.Sleep(time.Millisecond)
		look("2/1s")
		write("3/1s")
		moody.refuses = true
		look("2/1s")
		moody.refuses = false
		look("2/1s")
		if err := s.UseClients(nil); err != nil {
			t.Fatal(err)
		}
		look("3/1s") // at once
		loaded := s.Status().Config.Loaded
		time.Sleep(2 * again)
		if look("3/1s"); s.Status().Config.Loaded != loaded {
			t.Error("what is in use is taken again")
		}
	})
}

const (
	oneLimit = "policies: [{name: a, key: all, limits: [1/1s]}]\n"
	halfFile = "policies:\n  - {name: a, key: all, limits: [2/1s]}\n"
	allFile  = halfFile + "  - {name: b, key: client_ip, limits: [2/1s]}\n"
)

func newConfig(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Half a file can be valid. It is not taken while the writer goes on.
func TestHalfAFileIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(newConfig(t, oneLimit), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := newFollower(s, "weir.yaml")
		var file atomic.Value
		file.Store(oneLimit)
		f.read = func(context.Context) ([]byte, error) { return []byte(file.Load().(string)), nil }
		events := make(chan fsnotify.Event)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.run(ctx, events, nil) }()
		// each looks done for a while
		for _, part := range []string{halfFile, halfFile + "  - {na", halfFile, allFile[:len(allFile)-1]} {
			file.Store(part)
			events <- fsnotify.Event{}
			time.Sleep(steady)
			synctest.Wait()
			if n := len(s.Config().Policies); n != 1 || s.Config().Policies[0].Limits[0].Limit != "1/1s" || s.Status().Config.Err != nil {
				t.Fatalf("half a file is in use, or refused: %q, error %v", part, s.Status().Config.Err)
			}
		}
		file.Store(allFile) // renamed over
		events <- fsnotify.Event{}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(s.Config().Policies); n != 2 {
			t.Errorf("a second after the rename %d policies are in use, want 2", n)
		}
		file.Store(oneLimit) // and nothing reports it
		time.Sleep(poll + steady)
		synctest.Wait()
		if n := len(s.Config().Policies); n != 1 {
			t.Errorf("without an event %d policies are in use, want 1", n)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// Reload reads until two reads are equal, and gives up after many different reads.
func TestReloadReadsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := []string{"a", "ab", "abc", "abc", "never"}
		data, err := readSteady(func() ([]byte, error) {
			part := parts[0]
			parts = parts[1:]
			return []byte(part), nil
		})
		if string(data) != "abc" || err != nil || len(parts) != 1 {
			t.Errorf("%q is taken, error %v; %q are left", data, err, parts)
		}
		n := 0
		start := time.Now()
		if data, err := readSteady(func() ([]byte, error) { n++; return []byte{byte(n)}, nil }); !errors.Is(err, errUnsteady) {
			t.Errorf("of a file that changes all the time %q, error %v", data, err)
		}
		if took := time.Since(start); took != rereads*steady {
			t.Errorf("it took %v", took)
		}
		gone := errors.New("gone")
		if _, err := readSteady(func() ([]byte, error) { return nil, gone }); !errors.Is(err, gone) {
			t.Errorf("of a file that is gone the error is %v", err)
		}
	})
}

// Who reads a file that does not come is free when ctx ends.
func TestWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan struct{})
	defer close(hangs)
	go cancel()
	if _, err := within(ctx, func() ([]byte, error) { <-hangs; return nil, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if data, err := within(t.Context(), func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(data) != "x" {
		t.Errorf("%q, error %v", data, err)
	}
}
