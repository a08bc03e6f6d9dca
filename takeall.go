package weir

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

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
