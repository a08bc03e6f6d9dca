package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// ErrUnnamed is the error of a Hold or SetLimit with a limiter that has no name, under which the store would keep what it needs.
var ErrUnnamed = store.ErrUnnamed

// A LifeError reports a life that a Hold can't have.
type LifeError struct{ Life time.Duration }

// Error implements error.
func (e *LifeError) Error() string {
	return fmt.Sprintf("weir: the life of a hold is %v; accepted: 1µs or longer", e.Life)
}

// A Hold is an estimate that was taken for work whose cost is known at its end. Commit settles it at what the work cost; Cancel gives
// all back. Nobody needs to do either: when its life is over it is given back, so that a holder that dies costs nothing for long.
type Hold struct {
	// Decision is the answer of the Take that made the hold. If it was denied, nothing is held, and RetryAfter says when to come back.
	Decision

	limiter *Limiter
	key     string
	id      int64

	mu      sync.Mutex
	settled bool
}

// Hold takes an estimated cost, now, as Take does, and keeps it for its life, at least a microsecond, to be settled. The limiter must have a name. 0 is an
// estimate too: the work is let begin while its key owes nothing.
func (l *Limiter) Hold(ctx context.Context, key string, cost int64, life time.Duration) (*Hold, error) {
	if life < time.Microsecond {
		return nil, &LifeError{life}
	}
	h := &Hold{limiter: l, key: key, id: 1 + rand.Int64N(1<<62)} //nolint:gosec // it need only differ from those of the key
	var err error
	b := l.bound.Load()
	h.Decision, err = b.decision(l.do(ctx, b, key, algorithm.Op{Kind: algorithm.Reserve, Cost: cost, ID: h.id, Life: int64(life)}))
	if err != nil {
		return nil, err
	}
	h.settled = !h.Allowed
	return h, nil
}

// Commit settles the hold at what the work cost, more or less than was held. What is more and finds no room is owed: it is
// taken before anything else as units come back. It is denied, with RetryAfter Never, if the hold is settled or its life is over; what the work cost is
// then not charged, and may be taken as any cost. The decision is what stands afterwards.
func (h *Hold) Commit(ctx context.Context, cost int64) (Decision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settle(ctx, cost)
}

// Cancel gives back what was held. After a Commit, or if the life is over, there is nothing to give back. It does its work also when ctx has ended.
func (h *Hold) Cancel(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		return nil
	}
	_, err := h.settle(context.WithoutCancel(ctx), 0)
	return err
}

func (h *Hold) settle(ctx context.Context, cost int64) (Decision, error) {
	b := h.limiter.bound.Load() // it may be another one since
	d, err := b.decision(h.limiter.do(ctx, b, h.key, algorithm.Op{Kind: algorithm.Commit, Cost: cost, ID: h.id}))
	h.settled = h.settled || err == nil
	h.limiter.lines.stir(h.key)
	return d, err
}
