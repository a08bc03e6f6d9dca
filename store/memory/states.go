package memory

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// A stateTable maps fingerprints to states of any number of words, with a short lock for each of its shards.
type stateTable struct {
	store  *Store
	shards [stateShards]stateShard
	cursor atomic.Uint64
}

type stateShard struct {
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
	at      int     // in entries
	state   []int64 // may be short
	expires int64   // the time from which the state can't be told from that of a new key
	extra   int     // what the state counts beyond the key
	short   [shortState]int64
}

func newStateTable(s *Store) *stateTable {
	t := &stateTable{store: s}
	for i := range t.shards {
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
	e.state = e.short[:0]
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

// reclaim implements reclaimer.
func (t *stateTable) reclaim(now int64) (freed int, next int64) {
	next = math.MaxInt64
	for range stateShards {
		h := &t.shards[t.cursor.Add(1)%stateShards]
		if h.next.Load() <= now {
			h.mu.Lock()
			freed = h.sweep(sweptWhenFull, now)
			h.mu.Unlock()
			if freed > 0 { // the next call goes on from here
				break
			}
		}
		next = min(next, h.next.Load())
	}
	t.store.forget(freed)
	return freed, next
}

// stateBinding is a limit whose state is more than one word.
type stateBinding struct {
	store   *Store
	table   *stateTable
	program *algorithm.Program
	pad     fingerprint
}

// Do implements [store.Binding].
func (b *stateBinding) Do(_ context.Context, key string, op algorithm.Op, given int64) (algorithm.Verdict, error) {
	fp := b.store.hasher.hash(key).with(b.pad)
	v, did := b.do(fp, op, given, false)
	if did == kept {
		return v, nil
	}
	now := b.store.now(given)
	switch {
	case did == absent && op.Kind == algorithm.Take && op.Cost == 0 && b.store.full(now):
		return b.doOverflow(op, now, math.MaxInt64), nil
	case did != missing:
		return v, nil
	}
	reserved, next := b.store.reserve(now)
	v, did = b.do(fp, op, given, reserved)
	switch {
	case did == missing:
		b.store.overflowed.Add(1)
		return b.doOverflow(op, now, next), nil
	case did != added && reserved:
		b.store.keys.Add(-1)
	}
	return v, nil
}

// do carries out an operation under the lock of the key's shard. A key that is not in the table is added only if
// mayAdd.
func (b *stateBinding) do(fp fingerprint, op algorithm.Op, given int64, mayAdd bool) (algorithm.Verdict, outcome) {
	h := b.table.shard(fp)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := b.store.now(given) // under the lock, so that no key was forgotten at a later time than this
	e := h.index[fp]
	if e != nil {
		var r algorithm.Result
		e.state, r = b.program.Apply(e.state, op, now)
		b.settle(h, e, now, r)
		return r.Verdict(), kept
	}
	if !b.writes(op) {
		_, r := b.program.Apply(nil, op, now)
		return r.Verdict(), absent
	}
	if now < h.swept { // time stepped back: its state may be one that was forgotten, and all of it used until then
		wait := time.Duration(h.swept - now)
		return algorithm.Verdict{Granted: -1, Wait: wait, Reset: wait}, kept
	}
	if !mayAdd {
		return algorithm.Verdict{}, missing
	}
	if len(h.entries) >= sweptFrom {
		b.store.forget(h.sweep(sweptWithAdd, now))
	}
	e = h.add(fp)
	if o := b.store.sharedOf(b.pad, false); o != nil {
		o.mu.Lock()
		e.state = append(e.state, o.state...)
		o.mu.Unlock()
	}
	state, r := b.program.Apply(e.state, op, now)
	e.state = state
	b.settle(h, e, now, r)
	return r.Verdict(), added
}

// writes reports whether an operation on a fresh key changes it.
func (b *stateBinding) writes(op algorithm.Op) bool {
	if op.Cost == 0 || op.Kind > algorithm.TakeUpTo {
		return false
	}
	return op.Kind == algorithm.TakeUpTo || op.Cost <= b.program.Limit().Capacity()
}

// settle records when the entry can be forgotten, or forgets it.
func (b *stateBinding) settle(h *stateShard, e *entry, now int64, r algorithm.Result) {
	if len(e.state) == 0 {
		h.remove(e)
		b.store.keys.Add(-1)
		return
	}
	if more := len(e.state)/wordsPerKey - e.extra; more != 0 {
		e.extra += more
		h.extra.Add(int64(more))
	}
	h.expire(e, now+int64(r.ResetAfter))
}

// doOverflow decides for a key that finds the store full.
func (b *stateBinding) doOverflow(op algorithm.Op, now, next int64) algorithm.Verdict {
	o := b.store.sharedOf(b.pad, true)
	if o == nil {
		return denyFull(op, now, next)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var r algorithm.Result
	o.state, r = b.program.Apply(o.state, op, now)
	return r.Verdict()
}

// Now implements [store.Clock].
func (b *stateBinding) Now() int64 { return b.store.clock.now() }

// Program implements [store.Inspector].
func (b *stateBinding) Program() *algorithm.Program { return b.program }

// Inspect implements [store.Inspector].
func (b *stateBinding) Inspect(_ context.Context, key string, given int64) (state []int64, at int64, err error) {
	at = b.store.now(given)
	fp := b.store.hasher.hash(key).with(b.pad)
	h := b.table.shard(fp)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.index[fp]; e != nil {
		state = slices.Clone(e.state)
	}
	return state, at, nil
}
