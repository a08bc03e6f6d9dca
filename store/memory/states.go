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
	// entryBytes is the size of an entry, and indexBytes of its place in the list and the map of
	// its shard.
	entryBytes, indexBytes = 96, 72
	// sweptWithAdd is how many entries are looked at when one is added, so that what is forgotten keeps up with
	// what is added.
	sweptWithAdd = 4
	// sweptFrom is how many entries a shard has before any are looked at.
	sweptFrom = 256
	// shrunkFrom is how many places a shard has before it gives memory back.
	shrunkFrom = 32
	// mostSwept is how many are looked at when the store is full.
	mostSwept = 256
	// mostScratch is the most words of scratch memory that a shard of a large store keeps.
	mostScratch = 8192
)

// A stateTable maps fingerprints to accounts, with a short lock for each of its shards. A state of a binding without a name is an account
// whose limit is always the same.
type stateTable struct {
	store  *Store
	shards [stateShards]stateShard
	due    dueTime
	cursor int // of the next shard to check; guarded by the store's reclaiming
}

type stateShard struct {
	table   *stateTable
	number  int
	mu      sync.Mutex
	index   map[fingerprint]*entry
	entries []place
	places  int          // counted: the most entries since index and entries were made
	cursor  int          // of the next entry to check
	swept   int64        // the latest expiry of an evicted entry
	next    atomic.Int64 // no entry is fresh before this: nothing to reclaim
	soonest int64        // next, for the entries before the cursor
	scratch []int64      // memory for a state
	_       [64]byte
}

// A place is an entry in the list of its shard.
type place struct {
	entry   *entry
	expires int64 // the time from which the account equals the account of a new key
}

type entry struct {
	fp      fingerprint
	at      int32             // in entries
	words   int32             // of memory of the account beyond the entry
	account algorithm.Account // its state may be short
	short   [shortState]int64
}

func newStateTable(s *Store) *stateTable {
	t := &stateTable{store: s}
	t.due.init()
	for i := range t.shards {
		h := &t.shards[i]
		h.table, h.number, h.index = t, i, map[fingerprint]*entry{}
		h.swept, h.soonest = math.MinInt64, math.MaxInt64
		h.next.Store(math.MaxInt64)
	}
	return t
}

func (t *stateTable) shard(fp fingerprint) *stateShard { return &t.shards[fp.hi%stateShards] }

// addKey counts a key of an owner, with the memory of an entry, if there is room.
func (t *stateTable) addKey(o *owner) bool {
	if !t.store.room.addKey(o) {
		return false
	}
	if !t.store.room.grow(o, entryBytes+indexBytes) {
		t.store.room.dropKey(o)
		return false
	}
	return true
}

// dropKey is the reverse of addKey.
func (t *stateTable) dropKey(o *owner) {
	t.store.room.dropKey(o)
	t.store.room.force(o, -(entryBytes + indexBytes))
}

// makeRoom is addKey after keys were evicted if need be.
func (t *stateTable) makeRoom(o *owner, now int64) bool {
	for range mostReclaims {
		if t.addKey(o) {
			return true
		}
		if !t.store.reclaim(now) {
			break
		}
	}
	return false
}

// add adds a key after addKey has counted it.
func (h *stateShard) add(fp fingerprint) *entry {
	e := &entry{fp: fp, at: int32(len(h.entries))}
	e.account.State = e.short[:0]
	h.index[fp] = e
	h.entries = append(h.entries, place{e, math.MaxInt64})
	if len(h.entries) > h.places {
		h.places++
	} else {
		h.table.store.room.bytes.Add(-indexBytes) // counted before
	}
	return e
}

func (h *stateShard) remove(e *entry) {
	last := len(h.entries) - 1
	moved := h.entries[last]
	h.entries[e.at] = moved
	moved.entry.at = e.at
	h.soonest = min(h.soonest, moved.expires) // the cursor may have passed its new place
	h.entries[last] = place{}
	h.entries = h.entries[:last]
	delete(h.index, e.fp)
	s := h.table.store
	o := s.owners.of(e.fp.lo)
	s.room.force(o, -wordBytes*int64(e.words))
	s.room.releaseUnused(o, &e.account, &algorithm.Account{})
	h.table.dropKey(o)
	s.room.bytes.Add(indexBytes) // the place stays
	if h.places > shrunkFrom && len(h.entries) < h.places/4 {
		h.shrink()
	}
}

// shrink gives back the memory of unused places.
func (h *stateShard) shrink() {
	index := make(map[fingerprint]*entry, len(h.entries))
	for _, p := range h.entries {
		index[p.entry.fp] = p.entry
	}
	h.index, h.entries = index, append([]place(nil), h.entries...)
	h.table.store.room.bytes.Add(indexBytes * int64(len(h.entries)-h.places))
	h.places = len(h.entries)
}

// expire sets when the entry can be forgotten.
func (h *stateShard) expire(e *entry, at int64) {
	h.entries[e.at].expires = at
	h.soonest = min(h.soonest, at)
	if at < h.next.Load() {
		h.next.Store(at)
	}
	h.table.due.lower(at)
}

// sweep checks up to most entries, the next entries with each call, and evicts fresh ones. It
// returns the number of evictions, and the rest of most. The caller holds the mutex.
func (h *stateShard) sweep(most int, now int64) (freed, left int) {
	for ; most > 0; most-- {
		if h.cursor >= len(h.entries) { // once around
			h.next.Store(h.soonest)
			h.cursor, h.soonest = 0, math.MaxInt64
		}
		if h.next.Load() > now || len(h.entries) == 0 {
			break
		}
		if p := h.entries[h.cursor]; p.expires > now {
			h.soonest = min(h.soonest, p.expires)
			h.cursor++
		} else {
			h.swept = max(h.swept, p.expires)
			h.remove(p.entry)
			freed++
		}
	}
	h.table.store.reclaimed.Add(int64(freed))
	return freed, most
}

// sweepWithAdd is a sweep of some entries when one has been added, or is about to be. The caller holds the mutex.
func (h *stateShard) sweepWithAdd(now int64) {
	if len(h.entries) >= sweptFrom {
		h.sweep(sweptWithAdd, now)
	}
}

// sweepWhenFull is sweep under the mutex.
func (h *stateShard) sweepWhenFull(most int, now int64) (freed, left int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sweep(most, now)
}

// dueAt implements reclaimer.
func (t *stateTable) dueAt() int64 { return t.due.due.Load() }

// reclaim implements reclaimer.
func (t *stateTable) reclaim(now int64) bool {
	left := mostSwept
	for range stateShards {
		if t.cursor >= stateShards {
			t.cursor = 0
			if t.due.around(); t.due.due.Load() > now {
				return false
			}
		}
		h := &t.shards[t.cursor]
		if h.next.Load() <= now {
			var freed int
			freed, left = h.sweepWhenFull(left, now)
			if freed > 0 || left == 0 { // the next call goes on from here
				return freed > 0
			}
		}
		t.due.pass(h.next.Load())
		t.cursor++
	}
	return false
}
