package swap

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// mostRecent is the number of names that a store remembers, and leastMemory the shortest time; it is
// longer if an operation may take longer.
const (
	mostRecent  = 1024
	leastMemory = time.Second
)

// recent remembers names that a swap is in progress for, or that have a record which the Decider leaves
// alone. Requests for them skip the Decider. A name is forgotten after a while, and when another one takes
// its place; only the number of commands depends on it.
type recent struct {
	seed   maphash.Seed
	began  time.Time
	memory time.Duration
	places [mostRecent]place
}

type place struct {
	hash  atomic.Uint64 // of the name; 0 for none
	until atomic.Int64  // in ns since the beginning
}

func newRecent(timeout time.Duration) *recent {
	return &recent{seed: maphash.MakeSeed(), began: time.Now(), memory: max(leastMemory, timeout)}
}

func (r *recent) place(name string) (*place, uint64) {
	hash := max(1, maphash.String(r.seed, name))
	return &r.places[hash%mostRecent], hash
}

func (r *recent) has(name string) bool {
	p, hash := r.place(name)
	return p.hash.Load() == hash && int64(time.Since(r.began)) < p.until.Load()
}

func (r *recent) add(name string) {
	p, hash := r.place(name)
	p.until.Store(int64(time.Since(r.began) + r.memory))
	p.hash.Store(hash)
}

func (r *recent) remove(name string) {
	p, hash := r.place(name)
	p.hash.CompareAndSwap(hash, 0)
}
