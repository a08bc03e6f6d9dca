package memory

import (
	"context"
	"math"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// stateBinding is a limit whose state is more than one word, or one with a name, whose keys have accounts.
type stateBinding struct {
	store    *Store
	table    *stateTable
	program  *algorithm.Program
	pad      fingerprint
	capacity int64
	leases   bool // the limit is a concurrent one
	named    bool // there may be accounts of other limits, and reservations
}

// Do implements [store.Binding].
func (b *stateBinding) Do(ctx context.Context, key string, op algorithm.Op, given int64) (algorithm.Verdict, error) {
	if !b.named && (op.Kind == algorithm.Reserve || op.Kind == algorithm.Commit) {
		return algorithm.Verdict{}, store.ErrUnnamed
	}
	if op.Late && b.store.overflow == Share { // the reservation may be that of a new key of a full store
		op.Late = false
		if v, err := b.Do(ctx, key, op, given); err != nil || v.Granted >= 0 {
			return v, err
		}
		op.Late = true
	}
	return b.decide(b.fingerprint(key), op, given), nil
}

// decide carries out an operation on the key's account, or, if it is new and the store is full, as the store's Overflow says.
func (b *stateBinding) decide(fp fingerprint, op algorithm.Op, given int64) algorithm.Verdict {
	v, did := b.do(fp, op, given, false)
	switch {
	case op.Kind == algorithm.Commit && v.Granted < 0: // it may have been reserved when the store was full
		return b.commitOverflow(v, op, given)
	case did == kept:
		return v
	case did == absent && isPeek(op) && b.store.full(b.store.now(given)):
		return b.doOverflow(op, b.store.now(given), math.MaxInt64)
	case did != missing:
		return v
	}
	now := b.store.now(given)
	reserved, next := b.store.reserve(now)
	v, did = b.do(fp, op, given, reserved)
	switch {
	case did == missing:
		b.store.overflowed.Add(1)
		return b.doOverflow(op, now, next)
	case did != added && reserved:
		b.store.keys.Add(-1)
	}
	return v
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
	now := b.store.now(given) // under the lock, so that no key was forgotten at a later time than this
	if e := h.index[fp]; e != nil {
		return b.apply(h, e, op, now), kept
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
	b.store.forget(h.sweepWithAdd(now))
	return b.apply(h, b.add(h, fp), op, now), added
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

// apply carries out an operation on an entry. The caller holds the shard's mutex.
func (b *stateBinding) apply(h *stateShard, e *entry, op algorithm.Op, now int64) algorithm.Verdict {
	a, r := e.account.Apply(b.program, op, now)
	if !isPeek(op) {
		b.keep(h, e, a, now, now+int64(r.ResetAfter))
	}
	return r.Verdict()
}

// keep sets an entry's account, and when it can be forgotten, or forgets it. reset is when the state is fresh again.
func (b *stateBinding) keep(h *stateShard, e *entry, a algorithm.Account, now, reset int64) {
	size := len(a.State)
	if x := a.Extra; x != nil {
		reset = now + a.Life(now)
		size += wordsOf(x)
	} else if size == 0 {
		h.remove(e)
		b.store.keys.Add(-1)
		return
	}
	e.account = a
	if more := size/wordsPerKey - e.extra; more != 0 {
		e.extra += more
		h.extra.Add(int64(more))
	}
	h.expire(e, reset)
}

// wordsOf returns about how many words an Extra takes.
func wordsOf(x *algorithm.Extra) int {
	const itself, former, hold = 8, 5, 6
	words := itself + hold*len(x.Holds)
	for _, f := range x.Formers {
		words += former + len(f.State)
	}
	return words
}

// doOverflow decides for a key that finds the store full.
func (b *stateBinding) doOverflow(op algorithm.Op, now, next int64) algorithm.Verdict {
	o := b.store.sharedOf(b.pad, true)
	if o == nil {
		return denyFull(op, now, next)
	}
	return o.apply(b.program, op, now)
}

// commitOverflow settles a reservation of the new keys of a full store, if it is one. v is the answer if not.
func (b *stateBinding) commitOverflow(v algorithm.Verdict, op algorithm.Op, given int64) algorithm.Verdict {
	if o := b.store.sharedOf(b.pad, false); o != nil {
		if shared := o.apply(b.program, op, b.store.now(given)); shared.Granted >= 0 {
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
