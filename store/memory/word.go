package memory

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// wordBinding is a limit whose state is one word.
type wordBinding struct {
	store   *Store
	table   *table
	word    algorithm.Word
	pad     fingerprint
	program *algorithm.Program

	owner    *owner
	capacity int64

	_         [64]byte // what is above is never written
	contended atomic.Bool
	_         [63]byte
}

// Do implements [store.Binding].
//
// It looks for the slot before it reads the clock: a processor does not begin what comes after a clock reading before that
// is done, and the wait for a slot's memory would be added to it. Where several cores fight for a slot, it reads the clock
// first: in the time that takes, the slot would move to another core once more.
func (b *wordBinding) Do(_ context.Context, key string, op algorithm.Op, given int64) (algorithm.Verdict, error) {
	fp := b.store.hasher.hash(key).with(b.pad)
	var s *slot
	var found bool
	contended := b.contended.Load()
	if !contended {
		s, found = b.table.segment(fp).probe(fp)
	}
	now, ok := b.word.Units(b.store.now(given))
	if !ok {
		return algorithm.Verdict{}, store.ErrTime
	}
	if contended {
		s, found = b.table.segment(fp).probe(fp)
		if now%calm == 0 {
			b.contended.Store(false)
		}
	}
	if found && op.Kind == algorithm.Take {
		if v, ok := b.take(s, op.Cost, now, given == store.OwnClock); ok {
			return v, nil
		}
	}
	if op.Kind == algorithm.Reserve || op.Kind == algorithm.Commit {
		return algorithm.Verdict{}, store.ErrUnnamed
	}
	v, _ := b.update(fp, op, now, given == store.OwnClock)
	return v, nil
}

// calm is after about how many requests a limit on which a swap failed is tried as one on which none does.
const calm = 1021

// stale is how long before its swap a request may have read the clock, and be worth a second look: in that time
// another may have written a word from a later clock.
const stale = time.Millisecond

// take decides with a swap of the slot's word, or with no write at all. It returns false if the slot
// no longer holds the key's word.
func (b *wordBinding) take(s *slot, cost, now int64, ownClock bool) (algorithm.Verdict, bool) {
	for {
		word := s.word.Load()
		if word <= free {
			return algorithm.Verdict{}, false
		}
		next, allowed := b.word.Take(word, cost, now)
		if next != word && !s.word.CompareAndSwap(word, next) {
			if !b.contended.Load() {
				b.contended.Store(true)
			}
			continue
		}
		v := b.word.Verdict(word, next, cost, now, allowed)
		if allowed || !ownClock || v.Wait > stale {
			return v, true
		}
		now, _ = b.word.Units(b.store.clock.now())
		ownClock = false // look once
	}
}

// update carries out an operation on a key that has no slot, or that is not a Take. It returns the time at which
// it did.
func (b *wordBinding) update(fp fingerprint, op algorithm.Op, now int64, ownClock bool) (v algorithm.Verdict, at int64) {
	start := int64(math.MinInt64) // of a key that is added, if the new keys of a full store share a budget
	step := func(word int64) (next int64) {
		if ownClock { // under the lock: no key was evicted at a later time
			now, _ = b.word.Units(b.store.clock.now())
		}
		if next, v = b.word.Apply(max(word, start), op, now); op.Kind == algorithm.Reset {
			next = free
		}
		return next
	}
	defer runtime.KeepAlive(b) // and so of the owner, until its key is counted
	switch b.table.update(fp, now, false, step) {
	case kept:
		return v, now
	case absent:
		if op.Kind == algorithm.Take && op.Cost == 0 && !b.hasRoom(fp, now) {
			return b.doOverflow(op, now), now
		}
		return v, now
	}
	if o := b.store.sharedOf(b.pad, false); o != nil {
		o.mu.Lock()
		start = o.word
		o.mu.Unlock()
	}
	for range mostReclaims {
		if b.store.room.addKey(b.owner) {
			switch b.table.update(fp, now, true, step) {
			case added:
				b.owner.bytes.Add(slotBytes)
				return v, now
			case kept, absent:
				b.store.room.dropKey(b.owner)
				return v, now
			}
			b.store.room.dropKey(b.owner)
		}
		if !b.store.reclaim(b.word.Time(now)) {
			break
		}
	}
	b.store.overflowed.Add(1)
	return b.doOverflow(op, now), now
}

// hasRoom reports whether a key could be added.
func (b *wordBinding) hasRoom(fp fingerprint, now int64) bool {
	for range mostReclaims {
		if b.store.room.addKey(b.owner) {
			b.store.room.dropKey(b.owner)
			if b.table.hasRoom(fp, now) {
				return true
			}
		}
		if !b.store.reclaim(b.word.Time(now)) {
			break
		}
	}
	return false
}

// doOverflow decides for a key that finds the store full.
func (b *wordBinding) doOverflow(op algorithm.Op, now int64) (v algorithm.Verdict) {
	o := b.store.sharedOf(b.pad, true)
	if o == nil {
		used, _ := b.word.Take(math.MinInt64, b.capacity, now)
		_, v = b.word.Apply(used, algorithm.Op{Cost: 1}, now)
		return b.store.denyFull(op, b.word.Time(now), v.Wait)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.word, v = b.word.Apply(o.word, op, now)
	return v
}

// Now implements [store.Clock].
func (b *wordBinding) Now() int64 { return b.store.clock.now() }

// Program implements [store.Inspector].
func (b *wordBinding) Program() *algorithm.Program { return b.program }

// Inspect implements [store.Inspector].
func (b *wordBinding) Inspect(_ context.Context, key string, given int64) (state []int64, at int64, err error) {
	at = b.store.now(given)
	fp := b.store.hasher.hash(key).with(b.pad)
	word := int64(math.MinInt64)
	b.table.update(fp, 0, false, func(w int64) int64 {
		word = w
		return w
	})
	if now, ok := b.word.Units(at); !ok {
		return nil, at, store.ErrTime
	} else if word > now {
		state = b.word.State(word)
	}
	return state, at, nil
}
