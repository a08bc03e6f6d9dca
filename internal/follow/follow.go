// Package follow reads files, and reads them again when they change.
package follow

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// Poll is the time between two reads of a file without events.
	Poll = time.Second
	// quiet is the time from the last event to the read: the writer may write more.
	quiet = 50 * time.Millisecond
	// Again is the time after which rejected content is offered again: the reason for the rejection
	// may be gone, without a change of the file.
	Again = 10 * time.Second
	// Steady is the time between two equal reads, after which a change counts: a writer that pauses
	// leaves half a file, which can be valid. A rename is in use after quiet and Steady.
	Steady = 250 * time.Millisecond
	// rereads is the most pairs of reads of one ReadSteady.
	rereads = 8
)

// errUnsteady is the error for a file that changes between all reads.
var errUnsteady = errors.New("the file is being written")

// ReadSteady reads until two reads, a quarter of a second apart, are equal, so half a file is not
// used. A file that changes for 2 seconds on end is an error.
func ReadSteady(read func() ([]byte, error)) ([]byte, error) {
	data, err := read()
	for range rereads {
		before := Digest(data, err)
		time.Sleep(Steady)
		if data, err = read(); Digest(data, err) == before {
			return data, err
		}
	}
	return nil, errUnsteady
}

// A File is a file to follow. Path, Read, Apply and Seen are required.
type File struct {
	Path string
	// Read reads the file. It should bound the size.
	Read func(context.Context) ([]byte, error)
	// Apply receives new content, or a new error of Read. An error rejects it; Apply also reports it.
	Apply func(data []byte, err error) error
	// Seen is the digest of the content in use.
	Seen [sha256.Size]byte
	// Changes, if not nil, counts changes that make another attempt at rejected content worthwhile.
	Changes func() int64
	// Log receives lost events, at level debug. Nil: none.
	Log *slog.Logger
}

// Follow applies the content of the file whenever it changes, until ctx ends; it returns ctx's
// error. The file may be rewritten, replaced by a rename, or be a link that moves. A change counts
// when two reads a quarter of a second apart are equal. Rejected content is offered again after a
// change of Changes, and every 10 seconds.
func Follow(ctx context.Context, file File) error {
	f := newFollower(file)
	events, failures, done := watch(filepath.Dir(file.Path))
	defer done()
	return f.run(ctx, events, failures)
}

func newFollower(file File) *follower {
	if file.Changes == nil {
		file.Changes = func() int64 { return 0 }
	}
	if file.Log == nil {
		file.Log = slog.New(slog.DiscardHandler)
	}
	return &follower{File: file}
}

// run looks at the file after events and failures, and each second.
func (f *follower) run(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error) error {
	ticker := time.NewTicker(Poll)
	defer ticker.Stop()
	settle := time.NewTimer(quiet)
	defer settle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
			settle.Reset(quiet)
		case err := <-failures: // such as too many events
			f.Log.Debug("changes of files may have been missed; the next read finds them", "error", err)
			settle.Reset(quiet)
		case <-settle.C:
			f.lookAgain(ctx, settle)
		case <-ticker.C:
			f.lookAgain(ctx, settle)
		}
	}
}

// watch reports changes in a directory until done is called. Without support of the system there
// are no events, and the file is read each second only.
func watch(directory string) (events <-chan fsnotify.Event, failures <-chan error, done func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, func() {}
	}
	if err := w.Add(directory); err != nil {
		_ = w.Close()
		return nil, nil, func() {}
	}
	return w.Events, w.Errors, func() { _ = w.Close() }
}

// A follower is the state of one Follow.
type follower struct {
	File

	// next is the digest of new content, read first at since. The zero Time: there is none.
	next  [sha256.Size]byte
	since time.Time
	// refused is the time of the last rejection, the zero Time if the content is in use; changes is
	// the count of Changes at that time.
	refused time.Time
	changes int64
}

// lookAgain looks at the file, and sets the timer for the second read of a change.
func (f *follower) lookAgain(ctx context.Context, settle *time.Timer) {
	if f.look(ctx) {
		settle.Reset(Steady)
	}
}

// look reads the file, and applies new content, or rejected content whose retry is due. It reports
// whether the content changed and has to be read again, after Steady.
func (f *follower) look(ctx context.Context) (changed bool) {
	data, err := f.Read(ctx)
	if ctx.Err() != nil {
		return false
	}
	now, changes := Digest(data, err), f.Changes()
	due := !f.refused.IsZero() && (changes != f.changes || time.Since(f.refused) >= Again)
	switch {
	case now == f.Seen:
		if f.since = (time.Time{}); !due {
			return false
		}
	case f.since.IsZero() || now != f.next:
		f.next, f.since = now, time.Now()
		return true
	case time.Since(f.since) < Steady:
		return true
	}
	f.Seen, f.changes, f.refused, f.since = now, changes, time.Time{}, time.Time{}
	if f.Apply(data, err) != nil {
		f.refused = time.Now()
	}
	return false
}

// Digest returns a digest of the content of a file, or of the error of its read.
func Digest(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("error " + err.Error()))
	}
	return sha256.Sum256(append([]byte("data "), data...))
}
