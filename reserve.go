package weir

import (
	"context"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A Reservation is units that were taken for work that may not happen: Cancel gives them back.
type Reservation struct {
	// Decision is the answer of the Take that made the reservation. If it was denied, nothing is reserved, and
	// RetryAfter says when to come back. Under a leaky-queue, Delay is the wait for the turn.
	Decision

	limiter *Limiter
	key     string
	cost    int64
	turn    *turn
	made    time.Time
	cancel  sync.Once
}

// Reserve takes the cost, now, as Take does, in a way that can be undone.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64) (*Reservation, error) {
	if err := check(ctx, cost); err != nil {
		return nil, err
	}
	made := time.Now()
	d, t, err := l.takeTurn(ctx, key, cost, false)
	if err != nil {
		return nil, err
	}
	return &Reservation{Decision: d, limiter: l, key: key, cost: cost, turn: t, made: made}, nil
}

// Cancel gives back what was reserved, once; further calls do nothing. It gives nothing back when the units have come
// back by themselves in the meantime. Under a leaky-queue a turn that has not come goes to those who Wait behind it.
func (r *Reservation) Cancel(ctx context.Context) (err error) {
	if !r.Allowed || r.cost == 0 {
		return nil
	}
	r.cancel.Do(func() { err = r.giveBack(ctx) })
	return err
}

func (r *Reservation) giveBack(ctx context.Context) error {
	l := r.limiter
	switch {
	case r.turn != nil:
		return l.giveUp(ctx, r.key, r.turn, nil)
	case time.Since(r.made) >= r.ResetAfter || l.limit.Algorithm == LeakyQueue:
		return nil
	}
	_, err := l.do(ctx, r.key, algorithm.Op{Kind: algorithm.Refund, Cost: r.cost})
	l.lines.stir(r.key)
	return err
}
