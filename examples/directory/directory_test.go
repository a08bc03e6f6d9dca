//go:build unix

package directory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/examples/directory"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/storetest"
)

func open(dir string, o storetest.Options) (store.Store, error) {
	return directory.Open(dir, directory.Options{TrustClientTime: o.TrustClientTime, Timeout: time.Minute})
}

func TestMain(m *testing.M) { storetest.Main(m, open) }

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			t.Helper()
			s, err := open(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.(*directory.Store).Close() })
			return s
		},
		Process: dir,
		// With -short the rules of processes, races and joint takes are enough: the algorithms are those of store/swap.
		Deployment: true,
	})
}

func opened(t *testing.T) (s *directory.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := directory.Open(dir, directory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func bind(t *testing.T, s *directory.Store) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("5/1m")})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file that someone else has written is an error that names the key, until a reset.
func TestForeignFile(t *testing.T) {
	s, dir := opened(t)
	b := bind(t, s)
	take := func() (algorithm.Verdict, error) {
		return b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	}
	if _, err := take(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = take()
	if k, ok := errors.AsType[*store.KeyError](err); !ok || k.Key != "weir:1:{k}:login" || !errors.Is(err, store.ErrNothingDone) {
		t.Errorf("error %v, want a KeyError that states that nothing was changed", err)
	}
	if _, err := b.Do(t.Context(), "k", algorithm.Op{Kind: algorithm.Reset}, store.OwnClock); err != nil {
		t.Error(err)
	}
	if v, err := take(); err != nil || v.Remaining != 4 {
		t.Errorf("after the reset: %+v, %v", v, err)
	}
}

// Sweep removes expired records, and no others.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := directory.Open(dir, directory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b := bind(t, s)
		for i, want := range []int{1, 2, 1} {
			if i < 2 {
				if _, err := b.Do(t.Context(), fmt.Sprint(i), algorithm.Op{Cost: 5}, store.OwnClock); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if files, err := filepath.Glob(filepath.Join(dir, "*.json")); err != nil || len(files) != want {
				t.Errorf("%d: files %q, %v; want %d", i, files, err, want)
			}
			time.Sleep(31 * time.Second)
		}
	})
}

// Without the directory there is no decision, and after some failures the circuit opens.
func TestDirectoryIsGone(t *testing.T) {
	s, dir := opened(t)
	b := bind(t, s)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if v, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if c := s.Counts(); c.Unready != 3 || c.Refused != 2 || c.Opened != 1 {
		t.Errorf("%+v", c)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := directory.Open(dir, directory.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	limiter, err := weir.New(weir.MustParseLimit("2/1h"), weir.WithStore(s), weir.WithName("mail"))
	if err != nil {
		panic(err)
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), "user:42", 1)
		fmt.Println(d.Allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
