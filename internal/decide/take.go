package decide

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// take decides the limits of a role together. If they are not to be charged, the decisions are those
// of each limit alone. On an error it decides nothing.
func (r *Request) take(ctx context.Context, claims []Claim, role Role, charge bool) error {
	limits, last := 0, (*Claim)(nil)
	for i := range claims {
		if k := &claims[i]; k.Role == role && k.Bound != nil {
			limits, last = limits+1, k
		}
	}
	switch {
	case limits == 0:
		return nil
	case limits == 1 && charge && r.ID == 0 && last.Bound.Limit.Algorithm != algorithm.Concurrent:
		v, err := last.Bound.Do(ctx, last.Key, algorithm.Op{Kind: algorithm.Take, Cost: last.Cost}, r.Now)
		if err == nil {
			v.Read(last.Decision, last.Bound.Capacity)
		}
		return err
	}
	return r.joint(ctx, claims, role, charge, nil)
}

// joint decides the limits of a role together: with their store, or if cause is not nil, in place of
// the store that failed with it, each as its OnError sets. On an error it decides nothing; in place of
// the store there is none.
func (r *Request) joint(ctx context.Context, claims []Claim, role Role, charge bool, cause error) error {
	var fewParts [4]store.Part
	var fewBounds [4]*store.Bound
	var fewPlaces [4]int
	parts, bounds, places := fewParts[:0], fewBounds[:0], fewPlaces[:0]
	for i := range claims {
		k := &claims[i]
		if k.Role != role || k.Bound == nil {
			charge = charge && (k.Role != role || k.Decision.Allowed)
			continue
		}
		b := k.decider(ctx, cause)
		if b == nil {
			charge = false
			continue
		}
		parts, bounds, places = append(parts, r.part(k, b)), append(bounds, b), append(places, i)
	}
	outcomes, err := takeOrLook(ctx, parts, r.Now, charge)
	if err != nil && cause == nil {
		return err
	}
	passed := err == nil && charge && granted(outcomes)
	for i, place := range places {
		k, b := &claims[place], bounds[i]
		if err != nil { // the states of one key are full
			k.failClosed()
			continue
		}
		*k.Decision = b.Decision(outcomes[i].Verdict)
		if passed {
			r.hold(k, b, &parts[i], outcomes[i])
		}
	}
	return nil
}

// decider returns the bound that decides the claim, by the cause of joint. It is nil if the claim is
// denied because the store failed.
func (k *Claim) decider(ctx context.Context, cause error) *store.Bound {
	if cause == nil {
		return k.Bound
	}
	b, err := Without(ctx, k.Bound, store.OnErrorOf(ctx, k.Bound.OnError), cause)
	if err != nil {
		k.failClosed()
		return nil
	}
	return b
}

// failClosed denies because the store failed.
func (k *Claim) failClosed() {
	*k.Decision = algorithm.Decision{Limit: k.Bound.Capacity, RetryAfter: RetryAfterFailure, Failed: true}
}

// part returns the claim as a part of a joint take under b.
func (r *Request) part(k *Claim, b *store.Bound) store.Part {
	p := b.Part(k.Key, k.Cost)
	if r.ID != 0 && !r.denied && b.Limit.Algorithm != algorithm.Concurrent {
		p.ID, p.Life = r.ID, r.Life
	}
	return p
}

func granted(outcomes []store.Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o store.Outcome) bool { return o.Granted < 0 })
}

// takeOrLook charges the parts together, or returns the outcome of each alone and changes nothing.
func takeOrLook(ctx context.Context, parts []store.Part, now int64, charge bool) ([]store.Outcome, error) {
	if charge {
		return store.TakeAll(ctx, parts, now)
	}
	outcomes := make([]store.Outcome, len(parts))
	for i := range parts {
		v, err := look(ctx, &parts[i], now)
		if err != nil {
			return nil, err
		}
		outcomes[i] = store.Outcome{Verdict: v, At: now}
	}
	return outcomes, nil
}

// look returns the verdict of a peek if the part would pass, and otherwise that of its denial. For a
// store that can't be inspected, and for a key with debt, the wait is the time until the key is fresh:
// the part passes then at the latest.
func look(ctx context.Context, p *store.Part, now int64) (algorithm.Verdict, error) {
	v, err := p.Binding.Do(ctx, p.Key, algorithm.Op{}, now)
	if err != nil || v.Remaining >= p.Cost {
		return v, err
	}
	wait := v.Reset
	if p.Cost > p.Limit.Capacity() {
		wait = algorithm.Never
	} else if inspector, ok := p.Binding.(store.Inspector); ok {
		state, at, err := inspector.Inspect(ctx, p.Key, now)
		if err != nil {
			return v, err
		}
		_, r := inspector.Program().Apply(slices.Clone(state), algorithm.Op{Cost: p.Cost}, at)
		if !r.Allowed {
			wait = r.RetryAfter
		}
	}
	v.Granted, v.Wait = -1, wait
	return v, nil
}

// TakeAll takes the parts, which are of bounds, together. If a store fails, the parts of all stores
// other than memory are decided in place of their stores, and bounds has those that decided. The error
// is that of the store if one of the bounds denies without its store.
func TakeAll(ctx context.Context, bounds []*store.Bound, parts []store.Part, now int64) ([]store.Outcome, error) {
	outcomes, cause := store.TakeAll(ctx, parts, now)
	if cause == nil {
		return outcomes, nil
	}
	for i, b := range bounds {
		if _, sound := b.Store.(*memory.Store); sound {
			continue
		}
		by, err := Without(ctx, b, store.OnErrorOf(ctx, b.OnError), cause)
		if err != nil {
			return nil, err
		}
		bounds[i], parts[i] = by, by.Part(parts[i].Key, parts[i].Cost)
	}
	return store.TakeAll(ctx, parts, now)
}
