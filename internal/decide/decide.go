package decide

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Do carries out an operation that takes units under one limit, with its store or in place of it. by
// is the bound that decided, under which the units are settled.
func Do(ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64) (by *store.Bound, v algorithm.Verdict, err error) {
	if v, err = b.Do(ctx, key, op, now); err == nil {
		return b, v, nil
	}
	return Fallback(ctx, b, key, op, now, err)
}

// Fallback is Do for an operation for which the store has returned cause.
func Fallback(
	ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64, cause error,
) (by *store.Bound, v algorithm.Verdict, err error) {
	if by, err = Without(ctx, b, store.OnErrorOf(ctx, b.OnError), cause); err != nil {
		return nil, v, err
	}
	v, err = by.Do(ctx, key, op, now)
	return by, v, err
}
