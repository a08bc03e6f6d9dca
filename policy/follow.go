package policy

import (
	"context"
	"crypto/sha256"
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
)

// Reload reads the file and replaces the configuration by it. What is wrong is refused as a whole,
// logged, and shown in [Set.Status]. Every Reload that is refused is logged, also for the same
// reason as before.
func (s *Set) Reload(path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	before := s.Status().Config.Err
	data, err := read(path)
	err = s.reload(path, data, err)
	if err != nil && before != nil && before.Error() == err.Error() { // note is silent about it
		s.log.Error("a change was refused again; what was in use stays", "of", "policies", "source", path, "error", err)
	}
	return err
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

// Follow replaces the configuration whenever the file changes, until ctx ends; it returns ctx's error. The file may be written anew, be renamed over, or be a link that
// comes to point elsewhere. A change that is refused is logged once, and shown in [Set.Status] until the next is taken; it is tried again when there are other clients, and now and then.
func (s *Set) Follow(ctx context.Context, path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	f := follower{set: s, path: path, seen: s.Config().sum}
	events, failures, done := watch(filepath.Dir(path))
	defer done()
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
			s.log.Debug("changes of files may have been missed; they are looked for", "error", err)
			settle.Reset(quiet)
		case <-settle.C:
			f.look(ctx)
		case <-ticker.C:
			f.look(ctx)
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
	seen [sha256.Size]byte
	// refused is when it was refused last, the zero Time if it was taken; clients are how often there had been other clients by then.
	refused time.Time
	clients int64
}

// look reads the file, and reloads what it has not seen, or what may be refused no longer.
func (f *follower) look(ctx context.Context) {
	data, err := readWithin(ctx, f.path)
	if ctx.Err() != nil {
		return
	}
	now, clients := digest(data, err), f.set.offers.Load()
	due := !f.refused.IsZero() && (clients != f.clients || time.Since(f.refused) >= again)
	if now == f.seen && !due {
		return
	}
	f.seen, f.clients, f.refused = now, clients, time.Time{}
	if f.set.reload(f.path, data, err) != nil { // it is logged, and kept for the status
		f.refused = time.Now()
	}
}

// digest tells one content of a file from another, and from one that can't be read.
func digest(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("error " + err.Error()))
	}
	return sha256.Sum256(append([]byte("data "), data...))
}
