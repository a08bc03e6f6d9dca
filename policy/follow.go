package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// poll is how often a file that is followed is read, whatever is told of it.
	poll = time.Second
	// quiet is how long nothing more has to be told of a file until it is read: who writes it may not be done.
	quiet = 50 * time.Millisecond
	// again is how long a file that was refused is left alone: the reason may go away, without a change of the file.
	again = 10 * time.Second
	// steady is the time between two equal reads, after which a change counts: a writer that pauses
	// leaves half a file, which can be valid. A rename is in use after quiet and steady.
	steady = 250 * time.Millisecond
	// rereads is the most pairs of reads of one Reload.
	rereads = 8
)

// errUnsteady is the error for a file that changes between all reads.
var errUnsteady = errors.New("weir: policies: the file is being written")

// Reload reads the file and replaces the configuration. An invalid file is rejected as a whole,
// logged, and shown in [Set.Status]. Every rejected Reload is logged, also for an old reason.
// Reload reads the file twice, a quarter of a second apart, until two reads are equal, so half a
// file is not used. A file that changes for 2 seconds on end is rejected.
func (s *Set) Reload(path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	before := s.Status().Config.Err
	data, err := readSteady(func() ([]byte, error) { return read(path) })
	err = s.reload(path, data, err)
	// note does not log a known reason
	if err != nil && before != nil && before.Error() == err.Error() {
		s.log.Error("a change was refused again; what was in use stays", "of", "policies", "source", path, "error", err)
	}
	return err
}

// readSteady reads until two reads, steady apart, are equal.
func readSteady(read func() ([]byte, error)) ([]byte, error) {
	data, err := read()
	for range rereads {
		before := digest(data, err)
		time.Sleep(steady)
		if data, err = read(); digest(data, err) == before {
			return data, err
		}
	}
	return nil, errUnsteady
}

func (s *Set) reload(path string, data []byte, err error) error {
	var c *Config
	if err == nil {
		c, err = Parse(data, path)
	}
	if err == nil {
		return s.Replace(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(&s.status.Config, "policies", path, err)
	return err
}

// Follow replaces the configuration whenever the file changes, until ctx ends; it returns ctx's
// error. The file may be rewritten, replaced by a rename, or be a link that moves.
// A change counts when two reads a quarter of a second apart are equal. A rejected change is logged
// once, and shown in [Set.Status] until the next change; it is tried again after a change of the
// clients, and every 10 seconds.
func (s *Set) Follow(ctx context.Context, path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	f := newFollower(s, path)
	events, failures, done := watch(filepath.Dir(path))
	defer done()
	return f.run(ctx, events, failures)
}

func newFollower(s *Set, path string) *follower {
	return &follower{
		set: s, path: path, seen: s.Config().sum,
		read: func(ctx context.Context) ([]byte, error) { return readWithin(ctx, path) },
	}
}

// run looks at the file after events and failures, and each second.
func (f *follower) run(ctx context.Context, events <-chan fsnotify.Event, failures <-chan error) error {
	ticker := time.NewTicker(poll)
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
			f.set.log.Debug("changes of files may have been missed; they are looked for", "error", err)
			settle.Reset(quiet)
		case <-settle.C:
			f.lookAgain(ctx, settle)
		case <-ticker.C:
			f.lookAgain(ctx, settle)
		}
	}
}

// watch tells of changes in a directory until done is called. If the system does not, nothing is told, and the file is read now and then all the same.
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

// A follower knows what it has seen of a file.
type follower struct {
	set  *Set
	path string
	read func(context.Context) ([]byte, error)
	seen [sha256.Size]byte
	// next is the digest of a new content, read first at since. The zero Time: there is none.
	next  [sha256.Size]byte
	since time.Time
	// refused is when it was refused last, the zero Time if it was taken; clients are how often there had been other clients by then.
	refused time.Time
	clients int64
}

// lookAgain looks at the file, and sets the timer for the second read of a change.
func (f *follower) lookAgain(ctx context.Context, settle *time.Timer) {
	if f.look(ctx) {
		settle.Reset(steady)
	}
}

// look reads the file, and reloads new content, or rejected content whose retry is due. It reports
// whether the content changed and has to be read again, after steady.
func (f *follower) look(ctx context.Context) (changed bool) {
	data, err := f.read(ctx)
	if ctx.Err() != nil {
		return false
	}
	now, clients := digest(data, err), f.set.offers.Load()
	due := !f.refused.IsZero() && (clients != f.clients || time.Since(f.refused) >= again)
	switch {
	case now == f.seen:
		if f.since = (time.Time{}); !due {
			return false
		}
	case f.since.IsZero() || now != f.next:
		f.next, f.since = now, time.Now()
		return true
	case time.Since(f.since) < steady:
		return true
	}
	f.seen, f.clients, f.refused, f.since = now, clients, time.Time{}, time.Time{}
	if f.set.reload(f.path, data, err) != nil { // it is logged, and kept for the status
		f.refused = time.Now()
	}
	return false
}

// digest tells one content of a file from another, and from one that can't be read.
func digest(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("error " + err.Error()))
	}
	return sha256.Sum256(append([]byte("data "), data...))
}
