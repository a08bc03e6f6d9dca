package memory

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
)

const (
	stateShards = 64 // a power of two
	shortState  = 3  // words of a state that are kept in the entry
	// wordsPerKey is how many words of a state count as another key.
	wordsPerKey = 8
	// sweptWithAdd is how many entries are looked at when one is added, so that what is forgotten keeps up with
	// what is added.
	sweptWithAdd = 4
	// sweptFrom is how many entries a shard has before any are looked at.
	sweptFrom = 256
	// sweptWhenFull is how many of a shard are looked at when the store is full.
	sweptWhenFull = 256
)

// A stateTable maps fingerprints to accounts, with a short lock for each of its shards. A state of a binding without a name is an account
// whose limit is always the same.
type stateTable struct {
	store  *Store
	shards [stateShards]stateShard
	cursor atomic.Uint64
}

type stateShard struct {
	number  int
	mu      sync.Mutex
	index   map[fingerprint]*entry
	entries []*entry
	cursor  int           // of the entry that is looked at next
	swept   int64         // the latest expiry that was forgotten: what a key that is not here may have had
	next    atomic.Int64  // no entry is fresh before this: nothing to reclaim
	soonest int64         // the same for the entries that the cursor has passed
	extra   *atomic.Int64 // of the store
	_       [64]byte
}

type entry struct {
	fp      fingerprint
	at      int               // in entries
	account algorithm.Account // its state may be short
	expires int64             // the time from which the account can't be told from that of a new key
	extra   int               // what the account counts beyond the key
	short   [shortState]int64
}

func newStateTable(s *Store) *stateTable {
	t := &stateTable{store: s}
	for i := range t.shards {
		t.shards[i].number = i
		t.shards[i].index = map[fingerprint]*entry{}
		t.shards[i].extra = &s.extra
		t.shards[i].swept = math.MinInt64
		t.shards[i].soonest = math.MaxInt64
		t.shards[i].next.Store(math.MaxInt64)
	}
	return t
}

func (t *stateTable) shard(fp fingerprint) *stateShard { return &t.shards[fp.hi%stateShards] }

func (h *stateShard) add(fp fingerprint) *entry {
	e := &entry{fp: fp, at: len(h.entries)}
	e.account.State = e.short[:0]
	h.index[fp] = e
	h.entries = append(h.entries, e)
	return e
}

func (h *stateShard) remove(e *entry) {
	last := len(h.entries) - 1
	h.entries[e.at] = h.entries[last]
	h.entries[e.at].at = e.at
	h.soonest = min(h.soonest, h.entries[e.at].expires) // the cursor may have passed its new place
	h.entries[last] = nil
	h.entries = h.entries[:last]
	delete(h.index, e.fp)
	h.extra.Add(-int64(e.extra))
}

// expire sets when the entry can be forgotten.
func (h *stateShard) expire(e *entry, at int64) {
	e.expires = at
	h.soonest = min(h.soonest, at)
	if at < h.next.Load() {
		h.next.Store(at)
	}
}

// sweep looks at some entries, others with each call, and forgets those that are fresh. The caller holds the mutex.
func (h *stateShard) sweep(most int, now int64) (freed int) {
	for range most {
		if h.cursor >= len(h.entries) { // once around
			h.next.Store(h.soonest)
			h.cursor, h.soonest = 0, math.MaxInt64
		}
		if h.next.Load() > now || len(h.entries) == 0 {
			break
		}
		if e := h.entries[h.cursor]; e.expires > now {
			h.soonest = min(h.soonest, e.expires)
			h.cursor++
		} else {
			h.swept = max(h.swept, e.expires)
			h.remove(e)
			freed++
		}
	}
	return freed
}

// sweepWithAdd is a sweep of some entries when one has been added, or is about to be. The caller holds the mutex.
func (h *stateShard) sweepWithAdd(now int64) (freed int) {
	if len(h.entries) < sweptFrom {
		return 0
	}
	return h.sweep(sweptWithAdd, now)
}

// sweepWhenFull is a sweep of many entries. It takes the mutex.
func (h *stateShard) sweepWhenFull(now int64) (freed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sweep(sweptWhenFull, now)
}

// reclaim implements reclaimer.
func (t *stateTable) reclaim(now int64) (freed int, next int64) {
	next = math.MaxInt64
	for range stateShards {
		h := &t.shards[t.cursor.Add(1)%stateShards]
		if h.next.Load() <= now {
			if freed = h.sweepWhenFull(now); freed > 0 { // the next call goes on from here
				break
			}
		}
		next = min(next, h.next.Load())
	}
	t.store.forget(freed)
	return freed, next
}
