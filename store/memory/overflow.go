package memory

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// An Overflow is the decision on a new key for which the store has no room: MaxKeys or MaxBytes are
// reached, or the share of the key's name, and no key can be evicted.
type Overflow uint8

const (
	// Deny denies a new key. RetryAfter is the least time until a key may be evicted, or until an
	// exhausted key of the limit gets a unit, whichever is shorter. The key may be denied again
	// then.
	Deny Overflow = iota
	// Share lets all new keys of a limit, or of a name, share one budget, of the limit's own
	// parameters. A key added while the budget is in debt starts with this debt.
	Share
)

// mostShared is how many limits have a budget for new keys that find the store full. Under more, they are denied.
const mostShared = 4096

const (
	// sharedPart is the part of MaxBytes reserved for the budgets of new keys, under Share.
	sharedPart = 16
	// sharedBytes is the size of a budget without its account's memory on the heap.
	sharedBytes = 256
	// leastWait is the least wait of a new key of a full store.
	leastWait = time.Millisecond
)

// A shared is the budget of the new keys of one limit, or of one name.
type shared struct {
	mu      sync.Mutex
	word    int64             // of a one-word limit
	account algorithm.Account // of any other
	words   int               // of memory of the account, with its Programs
}

// apply carries out an operation on the account, if there is memory.
func (o *shared) apply(s *Store, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.account
	a.State = slices.Clone(a.State)
	a, r := a.Apply(p, op, now)
	words := cap(a.State) + wordsOf(a.Extra) + programBytes/wordBytes
	if more := wordBytes * int64(words-o.words); more > 0 && !s.sharedRoom.growCommon(more) {
		return v, false
	} else if more < 0 {
		s.sharedRoom.bytes.Add(more)
	}
	o.account, o.words = a, words
	return r.Verdict(), true
}

// sharedOf returns the budget of the new keys of the limit with this fingerprint, or nil. It is made if need be.
func (s *Store) sharedOf(pad fingerprint, need bool) *shared {
	if s.overflow != Share {
		return nil
	}
	pad.lo &^= ownerMask // a name may get another owner
	s.sharing.Lock()
	defer s.sharing.Unlock()
	o := s.shared[pad]
	if o == nil && need && len(s.shared) < mostShared && s.sharedRoom.growCommon(sharedBytes) {
		if s.shared == nil {
			s.shared = map[fingerprint]*shared{}
		}
		o = &shared{word: math.MinInt64}
		s.shared[pad] = o
	}
	return o
}

// denyFull returns the denial of a new key of a full store. own is the time for which an exhausted
// key waits for a unit: RetryAfter is never longer, because the store may have room by then.
func (s *Store) denyFull(op algorithm.Op, now int64, own time.Duration) algorithm.Verdict {
	if op.Cost == 0 {
		return algorithm.Verdict{}
	}
	wait := own
	if due := s.dueAt(); due < math.MaxInt64 {
		wait = min(wait, time.Duration(due-now))
	}
	return algorithm.Verdict{Granted: -1, Wait: max(wait, leastWait)}
}
