package weir

import (
	"context"
	"errors"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/fallback"
	"github.com/weirlimit/weir/store"
)

// without returns the bound that decides in place of b, whose store returned err. The error is err
// if nothing else is to decide.
func (l *Limiter) without(ctx context.Context, b *bound, err error) (*bound, error) {
	if l.denies(ctx, err) {
		return nil, err
	}
	f, refusal := fallback.Bind(l.store, store.Spec{Limit: b.limit, Name: l.name}, store.OnErrorOf(ctx, l.onError), err)
	if refusal != nil {
		return nil, errors.Join(err, refusal)
	}
	fallback.Report(ctx, err)
	return &bound{limit: f.Limit, capacity: f.Limit.Capacity(), binding: f.Binding, without: &f}, nil
}

// denies reports whether err ends a request, so that nothing decides in place of the store.
func (l *Limiter) denies(ctx context.Context, err error) bool {
	return store.OnErrorOf(ctx, l.onError) == store.Deny || !store.IsFailure(ctx, err)
}

// take carries out an operation that takes units, with the store or without, and returns the bound
// that decided.
func (l *Limiter) take(ctx context.Context, b *bound, key string, op algorithm.Op, now int64) (*bound, algorithm.Verdict, error) {
	v, err := b.binding.Do(ctx, key, op, now)
	if err == nil {
		return b, v, nil
	}
	by, err := l.without(ctx, b, err)
	if err != nil {
		return nil, v, err
	}
	v, err = by.binding.Do(ctx, key, op, now)
	return by, v, err
}

// takeWithout decides on a Take for which the store returned err.
func (l *Limiter) takeWithout(ctx context.Context, b *bound, key string, cost int64, err error) (Decision, error) {
	by, err := l.without(ctx, b, err)
	if err != nil {
		return Decision{}, err
	}
	return by.decision(by.binding.Do(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, store.OwnClock))
}
