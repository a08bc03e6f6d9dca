package weir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// errNilReservation is the error of the methods of a nil Reservation.
var errNilReservation = errors.New("weir: the Reservation is nil; accepted: a Reservation that Limiter.Reserve returned")

// A Reservation is units that were taken for work that may not happen: Cancel gives them back.
type Reservation struct {
	// Decision is the answer of the Take that made the reservation. If it was denied, nothing is reserved, and
	// RetryAfter says when to come back. Under a leaky-queue, Delay is the wait for the slot.
	Decision

	limiter *Limiter
	place   place

	mu        sync.Mutex
	cancelled bool // or a lease that was over when it was to be renewed
}

// Reserve takes the cost, now, as Take does, in a way that can be undone. Of a concurrent limit it is what is in flight until it is
// cancelled, or its lease is over.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64) (*Reservation, error) {
	b := l.Bound()
	if err := check(ctx, b, cost, store.OwnClock); err != nil {
		return nil, err
	}
	d, p, err := l.takePlace(ctx, b, key, cost, nil)
	if err != nil {
		return nil, err
	}
	return &Reservation{Decision: d, limiter: l, place: p}, nil
}

// Lease returns how long what is reserved of a concurrent limit is kept unless it is renewed. It is 0 of any other limit, and if nothing is reserved. It goes by the limit
// that the reservation was made under, which may not be the limiter's any more.
func (r *Reservation) Lease() time.Duration {
	if r == nil {
		return 0
	}
	if b := r.place.under; b != nil && b.Limit.Algorithm == Concurrent && r.Allowed {
		return b.Limit.Period
	}
	return 0
}

// Cancel gives back what was reserved, once; after it has succeeded, further calls do nothing. It gives back what the
// limit still holds of the units, not what has come back by itself in the meantime (see Limit.Outstanding; under
// exponential that is nothing, once time has passed). Under a leaky-queue a slot that has not come goes to those who Wait behind it. Cancel does its work also
// when ctx has ended.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r == nil {
		return errNilReservation
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled || !r.Allowed || r.place.taken.Cost == 0 { // 0: also of the zero Reservation
		return nil
	}
	err := r.giveBack(context.WithoutCancel(ctx))
	r.cancelled = err == nil
	return err
}

// Renew keeps what was reserved of a concurrent limit for another lease, from now on. If the lease was over it is taken again, or denied: then
// nothing is reserved any more. It may be called while others call Cancel.
func (r *Reservation) Renew(ctx context.Context) (Decision, error) {
	if r == nil {
		return Decision{}, errNilReservation
	}
	l, b := r.limiter, r.place.under
	if b == nil {
		return Decision{}, errNoLimit
	}
	if b.Limit.Algorithm != Concurrent {
		return Decision{}, fmt.Errorf("weir: a reservation of %v has no lease to renew; accepted: one of a concurrent limit", b.Limit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled || !r.Allowed {
		return Decision{}, errors.New("weir: nothing is reserved that could be renewed; accepted: a reservation that was allowed, and not cancelled")
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	t, err := r.place.taken.Renew(ctx, l.time(b))
	d, err := decision(b, t.Verdict, err)
	if err == nil {
		r.place.taken, r.cancelled = t, !d.Allowed
	}
	return d, err
}

func (r *Reservation) giveBack(ctx context.Context) error {
	l, b := r.limiter, r.place.under
	if b.Limit.Algorithm == LeakyQueue {
		return l.handOn(ctx, r.place.taken.Key, r.place)
	}
	_, err := r.place.taken.GiveBack(ctx, l.time(b))
	l.lines.stir(r.place.taken.Key)
	return err
}

// ErrUnnamed is the error of a Hold or SetLimit with a limiter without a name, which the store
// needs for its records.
var ErrUnnamed = store.ErrUnnamed

// errNilHold is the error of all methods of a nil Hold.
var errNilHold = errors.New("weir: the Hold is nil; accepted: a Hold that Limiter.Hold returned")

// A LifeError reports a life that a Hold can't have.
type LifeError struct{ Life time.Duration }

// Error implements error.
func (e *LifeError) Error() string {
	return fmt.Sprintf("weir: the life of a hold is %v; accepted: 1µs or longer", e.Life)
}

// A Hold is an estimate for work whose cost is known at its end. Commit settles the hold at the
// real cost; Cancel gives its units back. At the end of its life a hold expires and its units are
// given back, so a dead holder costs nothing for long. Work of unknown length calls Renew, about
// three times in each life. A Hold may be used by many goroutines at once.
type Hold struct {
	// Decision is the result of the take. If it was denied, nothing is held, and RetryAfter is the
	// time to wait.
	Decision

	limiter  *Limiter
	key      string
	id       int64
	estimate int64
	life     time.Duration
	without  *store.Bound // nil: the store has the hold

	mu      sync.Mutex
	settled bool // nothing is held: a settlement succeeded, or the hold was denied
	unsure  bool // a settlement failed, and may have taken effect
}

// Hold takes an estimated cost, now, as Take does, and keeps the units for life, at least a
// microsecond, to be settled. The limiter must have a name. 0 is an estimate too: the work may
// begin if its key has no debt.
func (l *Limiter) Hold(ctx context.Context, key string, cost int64, life time.Duration) (*Hold, error) {
	if life < time.Microsecond {
		return nil, &LifeError{life}
	}
	h := &Hold{limiter: l, key: key, id: 1 + rand.Int64N(1<<62), estimate: cost, life: life} //nolint:gosec // unique for the key is enough
	by, v, err := l.take(ctx, key, h.op(), l.clock())
	if h.Decision, err = decision(by, v, err); err != nil {
		return nil, err
	}
	if by.Failed {
		h.without = by
	}
	h.settled = !h.Allowed
	return h, nil
}

// op takes the estimate, or renews the hold.
func (h *Hold) op() algorithm.Op {
	return algorithm.Op{Kind: algorithm.Reserve, Cost: h.estimate, ID: h.id, Life: int64(h.life)}
}

// bound returns the bound that has the hold.
func (h *Hold) bound() *store.Bound {
	if h.without != nil {
		return h.without
	}
	return h.limiter.Bound() // the limit may have changed
}

// Renew keeps the hold for its whole life again, from now on. If the hold has expired, Renew takes
// the estimate again, or is denied and may be retried. After a Commit or Cancel, also a failed one
// that may have taken effect, Renew returns an error.
func (h *Hold) Renew(ctx context.Context) (Decision, error) {
	if h == nil {
		return Decision{}, errNilHold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled || h.unsure {
		return Decision{}, errors.New("weir: there is no hold to renew; accepted: a hold that was allowed, and neither committed nor cancelled")
	}
	return h.limiter.settle(ctx, h.bound(), h.key, h.op(), h.limiter.clock())
}

// Commit settles the hold at the real cost of the work, more or less than the estimate. Units
// beyond the estimate without room become debt, up to 1024 times the limit's capacity: debt is paid
// first as units come back. If the hold has expired, the whole cost is charged in this way. The
// first successful Commit or Cancel settles the hold; a later Commit is denied, with RetryAfter
// Never, and charges nothing. After an error a Commit can be retried: no cost is charged twice. If
// the failed attempt may have taken effect, the retry charges only a hold that has not expired. The
// decision is the state of the key afterwards.
func (h *Hold) Commit(ctx context.Context, cost int64) (Decision, error) {
	if h == nil {
		return Decision{}, errNilHold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settle(ctx, cost)
}

// Cancel gives the estimate back. After a Commit, or if the hold has expired, there is nothing to
// give back. It does its work also when ctx has ended.
func (h *Hold) Cancel(ctx context.Context) error {
	if h == nil {
		return errNilHold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		return nil
	}
	_, err := h.settle(context.WithoutCancel(ctx), 0)
	return err
}

func (h *Hold) settle(ctx context.Context, cost int64) (Decision, error) {
	b, now := h.bound(), h.limiter.clock()
	if err := check(ctx, b, cost, now); err != nil {
		return Decision{}, err
	}
	// without a competing settlement a missing reservation has expired
	late := !h.settled && !h.unsure
	d, err := h.limiter.settle(ctx, b, h.key, algorithm.Op{Kind: algorithm.Commit, Late: late, Cost: cost, ID: h.id}, now)
	h.settled = h.settled || err == nil
	h.unsure = h.unsure || err != nil && !errors.Is(err, store.ErrNothingDone)
	return d, err
}
