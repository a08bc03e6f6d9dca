package memory

import (
	"math"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// An Overflow says what happens to a key that is new while the store holds MaxKeys others, and none of them was found to be
// fresh.
type Overflow uint8

const (
	// Deny denies it. RetryAfter is then the least time until one of the keys that were looked at may be fresh; it may
	// have to be asked again.
	Deny Overflow = iota
	// Share lets all such keys of a limit, or of a name, share one budget, of the limit's own parameters. A key that is added while that
	// budget is in debt starts with its debt.
	Share
)

// mostShared is how many limits have a budget for new keys that find the store full. Under more, they are denied.
const mostShared = 4096

// A shared is the budget of the new keys of one limit, or of one name.
type shared struct {
	mu      sync.Mutex
	word    int64             // of a one-word limit
	account algorithm.Account // of any other
}

func (o *shared) apply(p *algorithm.Program, op algorithm.Op, now int64) algorithm.Verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, r := o.account.Apply(p, op, now)
	o.account = a
	return r.Verdict()
}

// sharedOf returns the budget of the new keys of the limit with this fingerprint, or nil. It is made if need be.
func (s *Store) sharedOf(pad fingerprint, need bool) *shared {
	if s.overflow != Share {
		return nil
	}
	s.sharing.Lock()
	defer s.sharing.Unlock()
	o := s.shared[pad]
	if o == nil && need && len(s.shared) < mostShared {
		if s.shared == nil {
			s.shared = map[fingerprint]*shared{}
		}
		o = &shared{word: math.MinInt64}
		s.shared[pad] = o
	}
	return o
}

// denyFull is the answer for a new key that finds the store full, where one of the others may be fresh at next.
func denyFull(op algorithm.Op, now, next int64) algorithm.Verdict {
	switch {
	case op.Cost == 0:
		return algorithm.Verdict{}
	case next > now && next < math.MaxInt64:
		return algorithm.Verdict{Granted: -1, Wait: time.Duration(next - now)}
	}
	return algorithm.Verdict{Granted: -1, Wait: time.Millisecond} // nothing is known: look again soon
}
