package weir

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/weirlimit/weir/algorithm"
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
// never are more admitted than each limit allows. If limiters have a clock (WithClock), the time of the first such is that of all.
func TakeAll(ctx context.Context, charges ...Charge) (Decision, []Decision, error) {
	parts, index := make([]part, 0, len(charges)), make([]int, len(charges))
	now := store.OwnClock
	for i, c := range charges {
		if err := check(ctx, c.Cost); err != nil {
			return Decision{}, nil, err
		}
		if now == store.OwnClock && c.Limiter.now != nil {
			now = c.Limiter.time()
		}
		p := part{limiter: c.Limiter, Part: store.Part{Binding: c.Limiter.binding, Limit: c.Limiter.limit, Key: c.Key, Cost: c.Cost}}
		same := slices.IndexFunc(parts, p.sameState)
		if same < 0 {
			same, parts = len(parts), append(parts, p)
		}
		parts[same].Cost = max(parts[same].Cost, c.Cost)
		index[i] = same
	}
	verdicts, err := takeParts(ctx, parts, now)
	if err != nil {
		return Decision{}, nil, err
	}
	each := make([]Decision, len(charges))
	for i, c := range charges {
		each[i] = verdicts[index[i]].Decision(c.Limiter.capacity)
	}
	return algorithm.Together(each), each, nil
}

type part struct {
	limiter *Limiter
	store.Part
}

func (p part) sameState(other part) bool {
	a, b := p.limiter, other.limiter
	return p.Key == other.Key && a.name == b.name && a.limit == b.limit && same(a.store, b.store)
}

func same(a, b store.Store) bool {
	return reflect.TypeOf(a).Comparable() && a == b
}

// takeParts returns a verdict for each part, in their order.
func takeParts(ctx context.Context, parts []part, now int64) ([]algorithm.Verdict, error) {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return parts[i].compare(parts[j]) }) // the same for all callers
	sorted, oneStore := make([]store.Part, len(parts)), true
	for to, from := range order {
		sorted[to] = parts[from].Part
		oneStore = oneStore && same(parts[from].limiter.store, parts[0].limiter.store)
	}
	take := store.TakeInTurn
	if oneStore && len(parts) > 0 {
		if joiner, ok := parts[0].limiter.store.(store.Joiner); ok {
			take = joiner.TakeAll
		}
	}
	found, err := take(ctx, sorted, now, make([]algorithm.Verdict, 0, len(parts)))
	if err != nil {
		return nil, err
	}
	verdicts := make([]algorithm.Verdict, len(parts))
	for from, to := range order {
		verdicts[to] = found[from]
	}
	return verdicts, nil
}

func (p part) compare(other part) int {
	a, b := p.limiter, other.limiter
	return cmp.Or(cmp.Compare(p.Key, other.Key), cmp.Compare(a.name, b.name), cmp.Compare(a.limit.String(), b.limit.String()))
}
