package memory

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// stateBinding is a limit whose state is more than one word, or a limit with a name, whose keys
// have accounts.
type stateBinding struct {
	store    *Store
	table    *stateTable
	program  *algorithm.Program
	pad      fingerprint
	owner    *owner
	capacity int64
	used     atomic.Pointer[wait]
	added    int  // words that a take adds at most to a state that is not empty
	leases   bool // the limit is a concurrent one
	named    bool // there may be accounts of other limits, and reservations
}

// Do implements [store.Binding].
func (b *stateBinding) Do(ctx context.Context, key string, op algorithm.Op, given int64) (algorithm.Verdict, error) {
	if !b.named && (op.Kind == algorithm.Reserve || op.Kind == algorithm.Commit) {
		return algorithm.Verdict{}, store.ErrUnnamed
	}
	// the reservation may be of the shared budget of a full store
	if op.Late && b.store.overflow == Share {
		op.Late = false
		if v, err := b.Do(ctx, key, op, given); err != nil || v.Granted >= 0 {
			return v, err
		}
		op.Late = true
	}
	return b.decide(b.fingerprint(key), op, given), nil
}

// decide carries out an operation on the key's account. If the key is new and the store is full,
// Overflow decides.
func (b *stateBinding) decide(fp fingerprint, op algorithm.Op, given int64) algorithm.Verdict {
	v, did := b.do(fp, op, given, false)
	switch {
	case op.Kind == algorithm.Commit && v.Granted < 0: // it may have been reserved when the store was full
		return b.commitOverflow(v, op, given)
	case did == kept:
		return v
	case did == absent && isPeek(op) && !b.hasRoom(b.store.now(given)):
		return b.doOverflow(op, b.store.now(given))
	case did != missing && did != cramped:
		return v
	}
	return b.grow(fp, op, given)
}

// grow carries out an operation with a need for memory.
func (b *stateBinding) grow(fp fingerprint, op algorithm.Op, given int64) algorithm.Verdict {
	now, v, did := b.store.now(given), algorithm.Verdict{}, missing
	for range mostReclaims {
		counted := b.table.addKey(b.owner)
		v, did = b.do(fp, op, given, counted)
		if counted && did != added && did != missing {
			b.table.dropKey(b.owner)
		}
		if did != missing && did != cramped {
			return v
		}
		if !b.store.reclaim(now) {
			break
		}
	}
	if did == cramped { // the key has a budget of its own
		b.store.refused.Add(1)
		return v
	}
	b.store.overflowed.Add(1)
	return b.doOverflow(op, now)
}

// hasRoom reports whether a key could be added.
func (b *stateBinding) hasRoom(now int64) bool {
	if !b.table.makeRoom(b.owner, now) {
		return false
	}
	b.table.dropKey(b.owner)
	return true
}

func (b *stateBinding) fingerprint(key string) fingerprint {
	return b.store.hasher.hash(key).with(b.pad)
}

// do carries out an operation under the lock of the key's shard. A key that is not in the table is added only if
// mayAdd.
func (b *stateBinding) do(fp fingerprint, op algorithm.Op, given int64, mayAdd bool) (algorithm.Verdict, outcome) {
	h := b.table.shard(fp)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := b.store.now(given)  // under the lock: no key was evicted at a later time
	defer runtime.KeepAlive(b) // and so of the owner, until its key is counted
	if e := h.index[fp]; e != nil {
		v, ok := b.apply(h, e, op, now)
		if !ok {
			return v, cramped
		}
		return v, kept
	}
	switch {
	case !b.writes(op):
		_, r := algorithm.Account{}.Apply(b.program, op, now)
		return r.Verdict(), absent
	case now < h.swept:
		return denySwept(now, h.swept), kept
	case !mayAdd:
		return algorithm.Verdict{}, missing
	}
	h.sweepWithAdd(now)
	e := b.add(h, fp)
	v, ok := b.apply(h, e, op, now)
	if !ok { // there was memory for the entry, but not for the account
		h.remove(e)
		return v, missing
	}
	return v, added
}

// writes reports whether an operation on a fresh key changes it.
func (b *stateBinding) writes(op algorithm.Op) bool {
	switch op.Kind {
	case algorithm.Take:
		return 0 < op.Cost && op.Cost <= b.capacity
	case algorithm.TakeUpTo:
		return 0 < op.Cost
	case algorithm.Renew:
		return b.leases && 0 < op.Cost && op.Cost <= b.capacity
	case algorithm.Reserve:
		return op.Cost <= b.capacity
	case algorithm.Commit:
		return op.Late && 0 < op.Cost
	}
	return false
}

func isPeek(op algorithm.Op) bool { return op.Kind <= algorithm.TakeUpTo && op.Cost == 0 }

// denySwept is the answer for a new key at a time before the shard has last forgotten one: it may be that one, with all of
// its limit used until then.
func denySwept(now, swept int64) algorithm.Verdict {
	wait := time.Duration(swept - now)
	return algorithm.Verdict{Granted: -1, Wait: wait, Reset: wait}
}

// add adds a key, for which there is room. The caller holds the shard's mutex.
func (b *stateBinding) add(h *stateShard, fp fingerprint) *entry {
	e := h.add(fp)
	e.account = b.fresh(e.account.State)
	if p := e.account.Program; p != nil {
		b.store.room.hold(b.owner, p, false) // at most one for each operation under way
	}
	return e
}

// fresh returns the account that a new key begins with, in a state's memory: with the debt of the budget that the new keys of a full store share,
// if they do, and without its reservations.
func (b *stateBinding) fresh(state []int64) algorithm.Account {
	o := b.store.sharedOf(b.pad, false)
	if o == nil {
		return algorithm.Account{State: state}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return algorithm.Account{Program: o.account.Program, State: append(state, o.account.State...)}
}

// apply carries out an operation on an entry. If there is no memory for the larger account, the
// account stays unchanged: operations that take units are denied, and ok is false. Settlements are
// carried out under the limit of the account. The caller holds the shard's mutex.
func (b *stateBinding) apply(h *stateShard, e *entry, op algorithm.Op, now int64) (v algorithm.Verdict, ok bool) {
	if isPeek(op) {
		_, r := e.account.Apply(b.program, op, now)
		return r.Verdict(), true
	}
	if b.takesInPlace(e, op) {
		return b.takeInPlace(h, e, op, now), true
	}
	a, r := h.try(e.account, b.program, op, now)
	if b.keep(h, e, a, now, now+int64(r.ResetAfter)) {
		return r.Verdict(), true
	}
	switch op.Kind {
	case algorithm.Refund, algorithm.Cancel, algorithm.Commit, algorithm.Reset:
		if op.Late && !holds(e.account, op.ID) {
			b.owe(h, e, op.Cost, now)
			return r.Verdict(), true
		}
		p := b.program
		if e.account.Program != nil {
			p = e.account.Program
		}
		a, r = h.try(e.account, p, op, now)
		b.set(h, e, a, now, now+int64(r.ResetAfter))
		return r.Verdict(), true
	}
	if !r.Allowed { // a denial, of which the account would only have noted the limit
		return r.Verdict(), true
	}
	return b.store.denyFull(op, now, b.wait(now)), false
}

// holds reports whether the account has the reservation.
func holds(a algorithm.Account, id int64) bool {
	return a.Extra != nil &&
		slices.ContainsFunc(a.Extra.Holds, func(h algorithm.Hold) bool { return h.ID == id })
}

// owe charges units of a late commit as a debt, whose memory does not grow with each commit.
func (b *stateBinding) owe(h *stateShard, e *entry, units, now int64) {
	a := e.account.Owe(b.program, units, now)
	b.set(h, e, a, now, now)
}

// takesInPlace reports whether the operation is a take whose result fits the memory of the
// entry's state.
func (b *stateBinding) takesInPlace(e *entry, op algorithm.Op) bool {
	state := e.account.State
	return op.Kind <= algorithm.TakeUpTo && e.account.Plain(b.program) &&
		len(state) > 0 && len(state)+b.added <= cap(state)
}

// takeInPlace is apply without a copy of the state, where takesInPlace.
func (b *stateBinding) takeInPlace(
	h *stateShard, e *entry, op algorithm.Op, now int64,
) algorithm.Verdict {
	state, r := b.program.Apply(e.account.State, op, now)
	reset := now + int64(r.ResetAfter)
	if e.holds(state) {
		e.account.State = state
		h.expire(e, reset)
	} else { // less than half of the memory is used, or none
		b.set(h, e, algorithm.Account{Program: b.program, State: state}, now, reset)
	}
	return r.Verdict()
}

// keep sets an entry's account and the time of its eviction, or evicts a fresh account. It returns
// false, and does nothing, if there is no memory for the account. reset is the time at which the
// state is fresh again.
func (b *stateBinding) keep(h *stateShard, e *entry, a algorithm.Account, now, reset int64) bool {
	if a.Extra == nil && len(a.State) == 0 {
		h.remove(e)
		return true
	}
	adds := b.addsProgram(e, &a)
	if adds && !b.store.room.hold(b.owner, b.program, true) {
		return false
	}
	if more := e.growth(a); more != 0 && !b.store.room.grow(b.owner, wordBytes*int64(more)) {
		if adds {
			b.store.room.release(b.owner, b.program)
		}
		return false
	}
	b.put(h, e, a, now, reset)
	return true
}

// set is keep without a bound on memory.
func (b *stateBinding) set(h *stateShard, e *entry, a algorithm.Account, now, reset int64) {
	if a.Extra == nil && len(a.State) == 0 {
		h.remove(e)
		return
	}
	if b.addsProgram(e, &a) {
		b.store.room.hold(b.owner, b.program, false)
	}
	if more := e.growth(a); more != 0 {
		b.store.room.force(b.owner, wordBytes*int64(more))
	}
	b.put(h, e, a, now, reset)
}

// addsProgram reports whether the entry refers to the binding's Program with another account, and
// does not yet. Operations of a binding add no other Program.
func (b *stateBinding) addsProgram(e *entry, a *algorithm.Account) bool {
	return a.Program == b.program && e.account.Program != b.program
}

// put sets an entry's account. The caller has counted its memory.
func (b *stateBinding) put(h *stateShard, e *entry, a algorithm.Account, now, reset int64) {
	if a.Extra != nil {
		reset = now + a.Life(now)
	}
	b.store.room.releaseUnused(b.owner, &e.account, &a)
	e.set(a)
	h.expire(e, reset)
}

// A wait is a cached time until which an exhausted key waits for a unit.
type wait struct{ from, until int64 }

// wait returns the time for which an exhausted key waits for a unit, from a cache.
func (b *stateBinding) wait(now int64) time.Duration {
	w := b.used.Load()
	if w == nil || now < w.from || now >= w.until {
		state, _ := b.program.Apply(nil, algorithm.Op{Cost: b.capacity}, now)
		_, r := b.program.Apply(state, algorithm.Op{Cost: 1}, now)
		w = &wait{now, now + int64(max(r.RetryAfter, leastWait))}
		b.used.Store(w)
	}
	return time.Duration(w.until - now)
}

// doOverflow decides for a key that finds the store full.
func (b *stateBinding) doOverflow(op algorithm.Op, now int64) algorithm.Verdict {
	o := b.store.sharedOf(b.pad, true)
	if o == nil {
		return b.store.denyFull(op, now, b.wait(now))
	}
	if v, ok := o.apply(b.store, b.program, op, now); ok {
		return v
	}
	return b.store.denyFull(op, now, b.wait(now))
}

// commitOverflow settles a reservation of the new keys of a full store, if it is one. v is the answer if not.
func (b *stateBinding) commitOverflow(v algorithm.Verdict, op algorithm.Op, given int64) algorithm.Verdict {
	if o := b.store.sharedOf(b.pad, false); o != nil {
		if shared, ok := o.apply(b.store, b.program, op, b.store.now(given)); ok && shared.Granted >= 0 {
			return shared
		}
	}
	return v
}

// Now implements [store.Clock].
func (b *stateBinding) Now() int64 { return b.store.clock.now() }

// Program implements [store.Inspector].
func (b *stateBinding) Program() *algorithm.Program { return b.program }

// Inspect implements [store.Inspector]. Of an account it is the state that the binding's limit finds in it.
func (b *stateBinding) Inspect(_ context.Context, key string, given int64) (state []int64, at int64, err error) {
	at = b.store.now(given)
	fp := b.fingerprint(key)
	h := b.table.shard(fp)
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.index[fp]; e != nil {
		state = e.account.View(b.program, at)
	}
	return state, at, nil
}
