package peer

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// bareSlots holds a million keys at half load.
const bareSlots = 1 << 21

// bare is a table of fixed size with linear probing. A key is its seeded 64-bit hash, its state one word: the
// theoretical arrival time of its next request (the generic cell rate algorithm, ATM Forum Traffic Management
// Specification 4.0). It never grows or forgets, gives no decision beyond yes or no, and counts whole nanoseconds.
type bare struct {
	seed     maphash.Seed
	base     time.Time
	interval int64
	depth    int64
	slots    []bareSlot
}

type bareSlot struct {
	hash atomic.Uint64
	tat  atomic.Int64
}

func newBare(b Budget) (Limiter, error) {
	return &bare{
		seed:     maphash.MakeSeed(),
		base:     time.Now(),
		interval: int64(b.Interval()),
		depth:    int64(b.Interval()) * b.Count,
		slots:    make([]bareSlot, bareSlots),
	}, nil
}

// Allow implements Limiter. A full table denies new keys.
func (t *bare) Allow(key string) bool {
	s := t.slot(max(maphash.String(t.seed, key), 1)) // 0 marks a free slot
	if s == nil {
		return false
	}
	now := int64(time.Since(t.base))
	for {
		old := s.tat.Load()
		next := max(old, now) + t.interval
		if next-now > t.depth {
			return false
		}
		if s.tat.CompareAndSwap(old, next) {
			return true
		}
	}
}

func (t *bare) slot(hash uint64) *bareSlot {
	for i := range uint64(len(t.slots)) {
		s := &t.slots[(hash+i)&(bareSlots-1)]
		found := s.hash.Load()
		if found == 0 && s.hash.CompareAndSwap(0, hash) {
			return s
		}
		if found == 0 {
			found = s.hash.Load()
		}
		if found == hash {
			return s
		}
	}
	return nil
}
