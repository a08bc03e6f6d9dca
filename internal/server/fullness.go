package server

import (
	"log/slog"
	"sync"
	"time"

	"github.com/weirlimit/weir/store/memory"
)

const (
	// fullnessPeriod is how often the store in memory is checked for denials for want of memory.
	fullnessPeriod = time.Second
	// fullnessEnd is how long after the last such denial an episode ends.
	fullnessEnd = time.Minute
)

// fullness watches a store in memory for denials because it is full. Each episode is logged once.
type fullness struct {
	store *memory.Store
	log   *slog.Logger

	mu     sync.Mutex
	denied int64
	latest time.Time // of a denial; zero: there was none
}

// check compares the store's counts with the last check.
func (f *fullness) check() {
	s, now := f.store.Stats(), time.Now()
	f.mu.Lock()
	denied := s.Overflowed + s.Refused - f.denied
	begins := denied > 0 && (f.latest.IsZero() || now.Sub(f.latest) > fullnessEnd)
	if denied > 0 {
		f.denied, f.latest = f.denied+denied, now
	}
	f.mu.Unlock()
	if begins {
		most := f.store.Largest()
		f.log.Warn("the store has no room for more keys: new keys are denied, or share one budget", "denied", denied,
			"keys", s.Keys, "bytes", s.Bytes, "max_bytes", s.MaxBytes, "most", most.Name, "most_keys", most.Keys, "most_bytes", most.Bytes)
	}
}

// full reports whether an operation was denied within the last minute because the store is full.
func (f *fullness) full() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.latest.IsZero() && time.Since(f.latest) <= fullnessEnd
}
