package weir

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// Allow reports whether the key may pass now, and takes a cost of 1 if so. It is [Limiter.Take] for
// programs that need only yes or no.
//
// It returns false also if no decision could be made: the store failed, or ctx has ended. The error
// is lost, and so are Remaining and RetryAfter. Under a leaky-queue the Delay is lost too, which
// [Limiter.Wait] waits for, and a place of a concurrent limit stays taken until its lease ends;
// [Limiter.Acquire] returns a Lease, to be released.
func (l *Limiter) Allow(ctx context.Context, key string) bool {
	d, err := l.Take(ctx, key, 1)
	return err == nil && d.Allowed
}

// Take asks to pass at the cost, now. It takes the whole cost, or nothing.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (d Decision, err error) {
	b := l.Bound()
	if b == nil || l.now != nil || cost < 0 || ctx.Err() != nil {
		return l.takeAt(ctx, key, cost, l.clock())
	}
	v, err := b.Do(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, store.OwnClock) // takeAt, without the call
	if err == nil {
		v.Read(&d, b.Capacity)
		return d, nil
	}
	b, v, err = decide.Fallback(ctx, b, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, store.OwnClock, err)
	return decision(b, v, err)
}

// TakeAt is Take at a time.
func (l *Limiter) TakeAt(ctx context.Context, key string, cost int64, now time.Time) (Decision, error) {
	return l.takeAt(ctx, key, cost, nanoseconds(now))
}

// Peek returns what stands for the key, now, and changes nothing. It is a Take of cost 0.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	return l.Take(ctx, key, 0)
}

// PeekAt is Peek at a time.
func (l *Limiter) PeekAt(ctx context.Context, key string, now time.Time) (Decision, error) {
	return l.TakeAt(ctx, key, 0, now)
}

// TakeUpTo takes as much of the cost as there is room for, now, and returns how much that was. When there is
// room for none it is denied as a Take of 1 would be.
func (l *Limiter) TakeUpTo(ctx context.Context, key string, cost int64) (granted int64, d Decision, err error) {
	return l.takeUpTo(ctx, key, cost, l.clock())
}

// TakeUpToAt is TakeUpTo at a time.
func (l *Limiter) TakeUpToAt(ctx context.Context, key string, cost int64, now time.Time) (granted int64, d Decision, err error) {
	return l.takeUpTo(ctx, key, cost, nanoseconds(now))
}

func (l *Limiter) takeUpTo(ctx context.Context, key string, cost, now int64) (granted int64, d Decision, err error) {
	b, v, err := l.take(ctx, key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}, now)
	d, err = decision(b, v, err)
	return max(0, v.Granted), d, err
}

// Refund gives back units that were taken and not used, newest first, at most to the full capacity. The decision
// is what stands afterwards.
func (l *Limiter) Refund(ctx context.Context, key string, cost int64) (Decision, error) {
	return l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Refund, Cost: cost}, l.clock())
}

// RefundAt is Refund at a time.
func (l *Limiter) RefundAt(ctx context.Context, key string, cost int64, now time.Time) (Decision, error) {
	return l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Refund, Cost: cost}, nanoseconds(now))
}

// Reset forgets the key: its next request finds a fresh one.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Reset}, l.clock())
	return err
}

func (l *Limiter) takeAt(ctx context.Context, key string, cost, now int64) (Decision, error) {
	b, v, err := l.take(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, now)
	return decision(b, v, err)
}

// take carries out an operation that takes units, with the store or in place of it, and returns the
// bound that decided.
func (l *Limiter) take(ctx context.Context, key string, op algorithm.Op, now int64) (*store.Bound, algorithm.Verdict, error) {
	b := l.Bound()
	if err := check(ctx, b, op.Cost, now); err != nil {
		return nil, algorithm.Verdict{}, err
	}
	return decide.Do(ctx, b, key, op, now)
}

// settle carries out an operation that only the store of b decides. Units may come back by it.
func (l *Limiter) settle(ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64) (Decision, error) {
	if err := check(ctx, b, op.Cost, now); err != nil {
		return Decision{}, err
	}
	if op.Kind != algorithm.Reserve {
		defer l.lines.stir(key)
	}
	v, err := b.Do(ctx, key, op, now)
	return decision(b, v, err)
}

// outOfReach is a time that no store can keep.
const outOfReach = store.OwnClock + 1

// nanoseconds returns a time for a store, or outOfReach.
func nanoseconds(t time.Time) int64 {
	if at, ok := store.Nanoseconds(t); ok {
		return at
	}
	return outOfReach
}

// clock returns the time of WithClock for a store, or store.OwnClock.
func (l *Limiter) clock() int64 {
	if l == nil || l.now == nil {
		return store.OwnClock
	}
	return nanoseconds(l.now())
}

// check returns an error for a missing limit, a negative cost, an ended context, or a time out of
// reach, which must not reach a store.
func check(ctx context.Context, b *store.Bound, cost, now int64) error {
	switch {
	case b == nil:
		return errNoLimit
	case cost < 0:
		return &CostError{cost}
	case ctx.Err() != nil:
		return ctx.Err()
	case now == outOfReach:
		return ErrTime
	}
	return nil
}

// TakeMany decides many requests, now, and appends a decision for each to decisions, in their order. In
// memory this is faster than one by one, because it waits for the memory of many keys at once. Each request
// is all or nothing; the batch is not.
func (l *Limiter) TakeMany(ctx context.Context, requests []Request, decisions []Decision) ([]Decision, error) {
	return l.takeMany(ctx, requests, l.clock(), decisions)
}

// TakeManyAt is TakeMany at a time.
func (l *Limiter) TakeManyAt(ctx context.Context, requests []Request, now time.Time, decisions []Decision) ([]Decision, error) {
	return l.takeMany(ctx, requests, nanoseconds(now), decisions)
}

func (l *Limiter) takeMany(ctx context.Context, requests []Request, now int64, decisions []Decision) ([]Decision, error) {
	b := l.Bound()
	if b == nil {
		return decisions, errNoLimit
	}
	if now == outOfReach {
		return decisions, ErrTime
	}
	for _, r := range requests {
		if err := check(ctx, b, r.Cost, now); err != nil {
			return decisions, err
		}
	}
	first := len(decisions)
	decisions, err := b.TakeMany(ctx, requests, now, decisions)
	if err == nil {
		return decisions, nil
	}
	by, err := decide.Without(ctx, b, store.OnErrorOf(ctx, b.OnError), err)
	if err != nil {
		return decisions, err
	}
	return by.TakeMany(ctx, requests[len(decisions)-first:], now, decisions)
}

// A Charge is one of several limits that a request must pass together.
type Charge struct {
	Limiter *Limiter
	Key     string
	Cost    int64
}

// TakeAll asks to pass several limits together, now: all are charged, or none. The first decision is that of the request: allowed
// if all allow, with the least Remaining (and its Limit), the greatest RetryAfter of those that deny, and the greatest ResetAfter
// and Delay. The others say what stands for each charge, in their order; if the request is denied, those that are not Allowed are why.
//
// Charges of one limiter's state under one key are one, of the greatest cost among them.
//
// Charges that one store can decide in one step are never seen half done; see the store's documentation. Others are taken one
// after another, and given back when one denies: a concurrent request may see them charged in between, and be denied, but
// never are more admitted than each limit allows.
//
// If a store fails, the charges of all stores other than memory are decided without their stores,
// each as its limiter's [WithOnStoreError] sets; with store.Deny for one of them, TakeAll returns the
// error.
//
// If limiters have a clock (WithClock), the time of the first such is that of all.
func TakeAll(ctx context.Context, charges ...Charge) (Decision, []Decision, error) {
	parts, bounds := make([]store.Part, len(charges)), make([]*store.Bound, len(charges))
	now := store.OwnClock
	for i, c := range charges {
		l, b := c.Limiter, c.Limiter.Bound()
		if err := check(ctx, b, c.Cost, store.OwnClock); err != nil {
			return Decision{}, nil, err
		}
		for j, other := range charges[:i] { // one limit, also if it changes just now
			if other.Limiter == l {
				b = bounds[j]
			}
		}
		bounds[i] = b
		if now == store.OwnClock && l.now != nil {
			now = l.time(b)
		}
		parts[i] = b.Part(c.Key, c.Cost)
	}
	outcomes, err := decide.TakeAll(ctx, bounds, parts, now)
	if err != nil {
		return Decision{}, nil, err
	}
	each := make([]Decision, len(charges))
	for i, o := range outcomes {
		each[i] = bounds[i].Decision(o.Verdict)
	}
	return algorithm.Together(each), each, nil
}
