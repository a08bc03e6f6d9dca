//go:build unix

// Package directory is a small store: each record is a file of a directory, which the processes of one
// machine share. It is the example of docs/new-store.md.
//
// It is right, but it is not fast: the directory has one lock. Records survive the processes, and a
// crash of the machine as far as the file system does. A crash within a joint take can leave some of
// its limits charged.
package directory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// Options for Open. The zero value is good for most programs.
type Options struct {
	Prefix          string        // separates programs that share a directory; "" is store.DefaultPrefix
	TrustClientTime bool          // lets callers give the time of an operation
	Timeout         time.Duration // of an operation; 0 means a second
}

// A Store is a [store.Store] in a directory. It has the methods of [swap.Store].
type Store struct {
	*swap.Store
	engine  *engine
	breaker *store.Breaker
}

// Open returns a store in a directory, which it makes if it is missing.
func Open(dir string, o Options) (*Store, error) {
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	s := &Store{engine: &engine{dir: dir, busy: make(chan struct{}, 1)}}
	name := "directory " + dir
	s.breaker = store.NewBreaker(store.BreakerOptions{Engine: name, Timeout: o.Timeout, Classify: classify, Probe: s.probe})
	circuit := s.breaker.Circuit("")
	s.Store = swap.New(s.engine, swap.Options{
		Engine: name, Prefix: o.Prefix, TrustClientTime: o.TrustClientTime, Timeout: o.Timeout,
		SharedClock: true, // all processes of a machine have one clock
		Breaker:     s.breaker,
		Circuit:     func(string) *store.Circuit { return circuit },
	})
	return s, nil
}

// Breaker implements [store.Guarded].
func (s *Store) Breaker() *store.Breaker { return s.breaker }

// probe reports whether the directory serves: the breaker calls it while the circuit is open.
func (s *Store) probe(ctx context.Context, _ *store.Circuit, _ bool) error {
	_, err := s.engine.Load(ctx, []swap.Key{{}})
	return err
}

// classify returns the cause of an error. Only failures of the engine open the circuit.
func classify(err error) store.Cause {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, store.ErrUnnamed), errors.Is(err, store.ErrClientTime), errors.Is(err, swap.ErrClosed):
		return store.CauseCaller
	case errors.Is(err, context.DeadlineExceeded):
		return store.CauseTimeout
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // of the directory itself
		return store.CauseUnready
	}
	return store.CauseRejection
}

// Sweep removes the files of records that have expired. Call it now and then, in one of the processes.
func (s *Store) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.engine.dir)
	for _, entry := range entries {
		if err != nil {
			break
		}
		err = s.engine.locked(ctx, func() error {
			path := filepath.Join(s.engine.dir, entry.Name())
			text, err := os.ReadFile(path) //nolint:gosec // it is in the directory
			var f file
			if err == nil && json.Unmarshal(text, &f) == nil && f.Expires.Before(time.Now()) {
				err = os.Remove(path)
			}
			return err
		})
	}
	return err
}

// An engine is the [swap.Engine].
type engine struct {
	dir  string
	busy chan struct{} // holds one during an operation of this process
}

// A file is the content of a record's file.
type file struct {
	Name    string    `json:"name"`
	Head    string    `json:"head,omitempty"`
	State   []int64   `json:"state"`
	Expires time.Time `json:"expires"`
}

// path returns the file of a name: names are longer than files may have them, and have slashes.
func (e *engine) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(e.dir, hex.EncodeToString(sum[:])+".json")
}

// read returns the content of a record's file, and "" if there is none or it has expired.
func (e *engine) read(name string, now time.Time) (text string, f file, foreign, err error) {
	b, err := os.ReadFile(e.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", f, nil, nil
	case err != nil:
		return "", f, nil, err
	}
	if foreign = json.Unmarshal(b, &f); foreign == nil && f.Expires.Before(now) {
		return "", file{}, nil, nil
	}
	return string(b), f, foreign, nil
}

// Load implements [swap.Engine].
func (e *engine) Load(ctx context.Context, keys []swap.Key) ([]swap.Cell, error) {
	cells := make([]swap.Cell, len(keys))
	err := e.locked(ctx, func() error {
		now := time.Now() // under the lock: whatever is in a record was written before
		for i, k := range keys {
			text, f, foreign, err := e.read(k.Name, now)
			if err != nil {
				return err
			}
			cells[i] = swap.Cell{Token: text, Foreign: foreign, Now: now.UnixMicro()}
			if foreign == nil {
				cells[i].Record = swap.Record{Head: f.Head, State: f.State}
			}
		}
		return nil
	})
	return cells, err
}

// Swap implements [swap.Engine]. Nothing is written until all old files have been compared.
func (e *engine) Swap(ctx context.Context, changes []swap.Change) (swapped bool, err error) {
	err = e.locked(ctx, func() error {
		now := time.Now()
		for _, c := range changes {
			text, _, _, err := e.read(c.Name, now)
			if err != nil || text != c.Old.Token.(string) {
				return nothingDone(err)
			}
		}
		for _, c := range changes {
			if err := e.write(c, now); err != nil {
				return err // unknown: some may have been written
			}
		}
		swapped = true
		return nil
	})
	return swapped, err
}

// write replaces a file as a whole, or removes it.
func (e *engine) write(c swap.Change, now time.Time) error {
	path := e.path(c.Name)
	if c.Next.Empty() {
		return os.Remove(path)
	}
	text, err := json.Marshal(file{Name: c.Name, Head: c.Next.Head, State: c.Next.State, Expires: now.Add(c.Life)})
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// locked calls f with the lock of the directory, and minds ctx while it waits.
func (e *engine) locked(ctx context.Context, f func() error) error {
	select {
	case e.busy <- struct{}{}:
	case <-ctx.Done():
		return nothingDone(ctx.Err())
	}
	lock, err := os.OpenFile(filepath.Join(e.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		<-e.busy
		return nothingDone(err)
	}
	got := make(chan error, 1)
	go func() { got <- syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) }()
	unlock := func() {
		_ = lock.Close() // which unlocks it
		<-e.busy
	}
	select {
	case err = <-got:
		defer unlock()
		if err != nil {
			return nothingDone(err)
		}
		return f()
	case <-ctx.Done():
		go func() {
			err := <-got // nil: it has the lock
			unlock()
			_ = err
		}()
		return nothingDone(ctx.Err())
	}
}

// nothingDone states in an error that the record is as it was.
func nothingDone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("directory: %w; %w", err, swap.ErrNothingDone)
}
