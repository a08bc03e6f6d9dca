package weir

import (
	"context"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A Reservation is units that were taken for work that may not happen: Cancel gives them back.
type Reservation struct {
	// Decision is the answer of the Take that made the reservation. If it was denied, nothing is reserved, and
	// RetryAfter says when to come back. Under a leaky-queue, Delay is the wait for the turn.
	Decision

	limiter *Limiter
	key     string
	place
	at   int64     // the time of the Take by the store's clock, or store.OwnClock if the store does not tell
	made time.Time // the same by this process's

	mu        sync.Mutex
	cancelled bool
}

// Reserve takes the cost, now, as Take does, in a way that can be undone.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64) (*Reservation, error) {
	if err := check(ctx, cost); err != nil {
		return nil, err
	}
	d, p, at, err := l.takePlace(ctx, key, cost)
	if err != nil {
		return nil, err
	}
	return &Reservation{Decision: d, limiter: l, key: key, place: p, at: at, made: time.Now()}, nil
}

// Cancel gives back what was reserved, once; after it has succeeded, further calls do nothing. It gives back what the
// limit still holds of the units, not what has come back by itself in the meantime (see Limit.Outstanding; under
// exponential that is nothing, once time has passed). Under a leaky-queue a turn that has not come goes to those who Wait behind it. Cancel does its work also
// when ctx has ended.
func (r *Reservation) Cancel(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled || !r.Allowed || r.cost == 0 {
		return nil
	}
	err := r.giveBack(context.WithoutCancel(ctx))
	r.cancelled = err == nil
	return err
}

func (r *Reservation) giveBack(ctx context.Context) error {
	l := r.limiter
	if l.limit.Algorithm == LeakyQueue {
		if r.Delay == 0 {
			return nil // it was let go at once
		}
		return l.handOn(ctx, r.key, r.place)
	}
	now, elapsed := l.time(), time.Since(r.made)
	if r.at != store.OwnClock {
		elapsed = time.Duration(now - r.at)
	}
	back := l.limit.Outstanding(r.cost, r.Decision, elapsed)
	if back == 0 {
		return nil
	}
	op := algorithm.Op{Kind: algorithm.Cancel, Cost: back, End: r.end}
	if elapsed == 0 || r.end == 0 {
		op.Kind = algorithm.Refund // nothing has come back in no time
	}
	_, err := l.binding.Do(ctx, r.key, op, now)
	l.lines.stir(r.key)
	return err
}
