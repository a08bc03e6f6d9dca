package decide

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/store"
)

// A Sampler logs at most one warning in a second: while a store is away, every request fails. The
// zero Sampler is ready. It may be used by many goroutines at once.
type Sampler struct{ second, missed atomic.Int64 }

// Warn logs an error without the keys in it, and how many warnings were not logged since the last.
func (s *Sampler) Warn(log *slog.Logger, message string, err error, args ...any) {
	now, last := time.Now().Unix(), s.second.Load()
	if now == last || !s.second.CompareAndSwap(last, now) {
		s.missed.Add(1)
		return
	}
	log.Warn(message, append(args, "error", store.WithoutKeys(err), "not_logged", s.missed.Swap(0))...)
}
