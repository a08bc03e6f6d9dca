package policy

import (
	"context"
	"fmt"

	"github.com/weirlimit/weir/internal/follow"
)

// Reload reads the file and replaces the configuration. An invalid file is rejected as a whole,
// logged, and shown in [Set.Status]. Every rejected Reload is logged, also for an old reason.
// Reload reads the file twice, a quarter of a second apart, until two reads are equal, so half a
// file is not used. A file that changes for 2 seconds on end is rejected.
func (s *Set) Reload(path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	before := s.Status().Config.Err
	data, err := follow.ReadSteady(func() ([]byte, error) { return follow.ReadRegular(path, maxFile) })
	err = s.reload(path, data, fileError(err))
	// note does not log a known reason
	if err != nil && before != nil && before.Error() == err.Error() {
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

// Follow replaces the configuration whenever the file changes, until ctx ends; it returns ctx's
// error. The file may be rewritten, replaced by a rename, or be a link that moves.
// A change counts when two reads a quarter of a second apart are equal. A rejected change is logged
// once, and shown in [Set.Status] until the next change; it is tried again after a change of the
// clients, and every 10 seconds.
func (s *Set) Follow(ctx context.Context, path string) error {
	if s.load() == nil {
		return errNoPolicies
	}
	return follow.Follow(ctx, s.file(path))
}

// file returns the file to follow.
func (s *Set) file(path string) follow.File {
	return follow.File{
		Path:    path,
		Read:    func(ctx context.Context) ([]byte, error) { return read(ctx, path) },
		Apply:   func(data []byte, err error) error { return s.reload(path, data, err) },
		Seen:    s.Config().sum,
		Changes: s.offers.Load,
		Log:     s.log,
	}
}

// read reads a file, and of one that is too large as much as shows that. It waits no longer than ctx
// for a file system that hangs.
func read(ctx context.Context, path string) ([]byte, error) {
	data, err := follow.Read(ctx, path, maxFile)
	return data, fileError(err)
}

// fileError names the subject of an error about a file.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("weir: policies: %w", err)
}
