package follow

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A document is a file in memory, and its content in use.
type document struct {
	file    atomic.Value // string
	used    atomic.Value // string
	applied atomic.Int64
	refuses atomic.Bool
	changes atomic.Int64
}

func newDocument(content string) (*document, *follower) {
	d := new(document)
	d.file.Store(content)
	d.used.Store(content)
	return d, newFollower(File{
		Path: "weir.yaml",
		Read: func(context.Context) ([]byte, error) { return []byte(d.content()), nil },
		Apply: func(data []byte, _ error) error {
			if d.refuses.Load() {
				return errors.New("not now")
			}
			d.used.Store(string(data))
			d.applied.Add(1)
			return nil
		},
		Seen:    Digest([]byte(content), nil),
		Changes: d.changes.Load,
	})
}

func (d *document) content() string { return d.file.Load().(string) }
func (d *document) inUse() string   { return d.used.Load().(string) }

// Rejected content is offered again after ten seconds, or after a change elsewhere, though the file
// has not changed. Content in use is not.
func TestRejectedContentIsOfferedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := newDocument("1")
		look := func(want string) {
			t.Helper()
			if f.look(t.Context()) { // a second time, after a change
				time.Sleep(Steady)
				f.look(t.Context())
			}
			if got := d.inUse(); got != want {
				t.Errorf("%s is in use, want %s", got, want)
			}
		}
		d.file.Store("2")
		d.refuses.Store(true)
		look("1")
		d.refuses.Store(false)
		time.Sleep(Again - time.Millisecond)
		look("1")
		time.Sleep(time.Millisecond)
		look("2")
		d.file.Store("3")
		d.refuses.Store(true)
		look("2")
		d.refuses.Store(false)
		look("2")
		d.changes.Add(1)
		look("3") // at once
		applied := d.applied.Load()
		time.Sleep(2 * Again)
		if look("3"); d.applied.Load() != applied {
			t.Error("content in use is applied again")
		}
	})
}

// Half a file is not used while the writer goes on.
func TestHalfAFileIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, f := newDocument("one")
		events := make(chan fsnotify.Event)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.run(ctx, events, nil) }()
		// each looks done for a while
		for _, part := range []string{"al", "all the", "al", "all the tex"} {
			d.file.Store(part)
			events <- fsnotify.Event{}
			time.Sleep(Steady)
			synctest.Wait()
			if d.inUse() != "one" {
				t.Fatalf("half a file is in use: %q", d.inUse())
			}
		}
		d.file.Store("all the text") // renamed over
		events <- fsnotify.Event{}
		time.Sleep(time.Second)
		synctest.Wait()
		if d.inUse() != "all the text" {
			t.Errorf("a second after the rename %q is in use", d.inUse())
		}
		d.file.Store("one") // without an event
		time.Sleep(Poll + Steady)
		synctest.Wait()
		if d.inUse() != "one" {
			t.Errorf("without an event %q is in use", d.inUse())
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// ReadSteady reads until two reads are equal, and gives up after many different reads.
func TestReadSteadyReadsTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := []string{"a", "ab", "abc", "abc", "never"}
		data, err := ReadSteady(func() ([]byte, error) {
			part := parts[0]
			parts = parts[1:]
			return []byte(part), nil
		})
		if string(data) != "abc" || err != nil || len(parts) != 1 {
			t.Errorf("%q is used, error %v; %q are left", data, err, parts)
		}
		n := 0
		start := time.Now()
		if data, err := ReadSteady(func() ([]byte, error) { n++; return []byte{byte(n)}, nil }); !errors.Is(err, errUnsteady) {
			t.Errorf("of a file that changes all the time %q, error %v", data, err)
		}
		if took := time.Since(start); took != rereads*Steady {
			t.Errorf("it took %v", took)
		}
		gone := errors.New("gone")
		if _, err := ReadSteady(func() ([]byte, error) { return nil, gone }); !errors.Is(err, gone) {
			t.Errorf("of a file that is gone the error is %v", err)
		}
	})
}

// A read of a file system that hangs ends with ctx.
func TestWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := make(chan struct{})
	defer close(hangs)
	go cancel()
	if _, err := Within(ctx, func() ([]byte, error) { <-hangs; return nil, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if data, err := Within(t.Context(), func() ([]byte, error) { return []byte("x"), nil }); err != nil || string(data) != "x" {
		t.Errorf("%q, error %v", data, err)
	}
}
