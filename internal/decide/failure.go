package decide

import (
	"context"
	"errors"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Without returns the bound that decides in place of b, whose store returned cause. Units that are
// taken under it are settled under it. The error is cause if on is store.Deny, or if cause is no
// failure of the store. It is joined with cause for a limit without the share of on, and for one
// that memory can't store.
func Without(ctx context.Context, b *store.Bound, on store.OnError, cause error) (*store.Bound, error) {
	if on == store.Deny || !store.IsFailure(ctx, cause) {
		return nil, cause
	}
	by, err := without(b, on)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	report(ctx, cause)
	return by, nil
}

// Denies reports whether a failure of the store denies requests under b, so that nothing decides in
// its place.
func Denies(ctx context.Context, b *store.Bound, cause error) bool {
	return store.OnErrorOf(ctx, b.OnError) == store.Deny || !store.IsFailure(ctx, cause)
}

func without(b *store.Bound, on store.OnError) (*store.Bound, error) {
	limit, err := on.Limit(b.Limit)
	if err != nil {
		return nil, err
	}
	if on == store.Allow {
		o := openOf(limit)
		return &store.Bound{
			Store: o, Binding: o, Clock: o, Spec: store.Spec{Limit: limit, Name: b.Name}, Capacity: o.capacity, Failed: true,
		}, nil
	}
	l, spec := localOf(b.Store), localSpec(b.Spec, limit)
	return l.bound(spec)
}

// Local returns the bound of units that were taken in the memory of this process, in place of s,
// under this limit and name.
func Local(s store.Store, limit algorithm.Limit, name string) (*store.Bound, error) {
	return localOf(s).bound(store.Spec{Limit: limit, Name: name})
}

// An open store allows all requests, at any cost, and stores nothing.
type open struct {
	capacity int64
	lease    time.Duration // of a concurrent limit
}

func openOf(l algorithm.Limit) open {
	o := open{capacity: l.Capacity()}
	if l.Algorithm == algorithm.Concurrent {
		o.lease = l.Period
	}
	return o
}

// Bind implements [store.Store].
func (open) Bind(spec store.Spec) (store.Binding, error) { return openOf(spec.Limit), nil }

// Do implements [store.Binding].
func (o open) Do(_ context.Context, _ string, op algorithm.Op, _ int64) (v algorithm.Verdict, err error) {
	v.Remaining, v.Reset = o.capacity, o.lease
	switch op.Kind {
	case algorithm.Take, algorithm.TakeUpTo, algorithm.Renew, algorithm.Reserve, algorithm.Commit:
		v.Granted = op.Cost
	}
	return v, nil
}

// Now implements [store.Clock].
func (open) Now() int64 { return time.Now().UnixNano() }

type causeKey struct{}

// WithCause returns a context with which a Limiter stores the error of its store in cause if it
// decides without the store.
func WithCause(ctx context.Context, cause *error) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

// report stores the error of a store in the cause of the context, if it has one.
func report(ctx context.Context, err error) {
	if cause, ok := ctx.Value(causeKey{}).(*error); ok {
		*cause = err
	}
}
