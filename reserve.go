package weir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errNilReservation is the error of the methods of a nil Reservation.
var errNilReservation = errors.New("weir: the Reservation is nil; accepted: a Reservation that Limiter.Reserve returned")

// A Reservation is units that were taken for work that may not happen: Cancel gives them back.
type Reservation struct {
	// Decision is the answer of the Take that made the reservation. If it was denied, nothing is reserved, and
	// RetryAfter says when to come back. Under a leaky-queue, Delay is the wait for the turn.
	Decision

	limiter *Limiter
	place   place

	mu        sync.Mutex
	cancelled bool // or a lease that was over when it was to be renewed
}

// Reserve takes the cost, now, as Take does, in a way that can be undone. Of a concurrent limit it is what is in flight until it is
// cancelled, or its lease is over.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64) (*Reservation, error) {
	if err := check(ctx, l.load(), cost); err != nil {
		return nil, err
	}
	d, p, err := l.takePlace(ctx, l.load(), key, cost, nil)
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
	if b := r.place.under; b != nil && b.limit.Algorithm == Concurrent && r.Allowed {
		return b.limit.Period
	}
	return 0
}

// Cancel gives back what was reserved, once; after it has succeeded, further calls do nothing. It gives back what the
// limit still holds of the units, not what has come back by itself in the meantime (see Limit.Outstanding; under
// exponential that is nothing, once time has passed). Under a leaky-queue a turn that has not come goes to those who Wait behind it. Cancel does its work also
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
	if b.limit.Algorithm != Concurrent {
		return Decision{}, fmt.Errorf("weir: a reservation of %v has no lease to renew; accepted: one of a concurrent limit", b.limit)
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
	d, err := b.decision(t.Verdict, err)
	if err == nil {
		r.place.taken, r.cancelled = t, !d.Allowed
	}
	return d, err
}

func (r *Reservation) giveBack(ctx context.Context) error {
	l, b := r.limiter, r.place.under
	if b.limit.Algorithm == LeakyQueue {
		return l.handOn(ctx, r.place.taken.Key, r.place)
	}
	_, err := r.place.taken.GiveBack(ctx, l.time(b))
	l.lines.stir(r.place.taken.Key)
	return err
}
