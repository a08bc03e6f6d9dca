package policy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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
		f := follower{set: s, path: path, seen: s.Config().sum}
		look := func(want string) {
			t.Helper()
			f.look(t.Context())
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
