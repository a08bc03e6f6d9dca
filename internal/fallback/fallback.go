// Package fallback decides in place of a store that failed, as a [store.OnError] says.
package fallback

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A Bound is a limit with a binding that decides in place of the binding of a store that failed.
// Units that were taken from it are settled with it.
type Bound struct {
	Store   store.Store
	Binding store.Binding
	Limit   algorithm.Limit // or the share of it, canonical
	Name    string          // of the states in Store
	Local   bool            // otherwise all requests are allowed
}

// Bind returns what decides on the limit of spec in place of s. The error is that of
// [store.OnError.Limit], or of a limit that memory can't store; of store.Deny it is cause.
func Bind(s store.Store, spec store.Spec, o store.OnError, cause error) (Bound, error) {
	limit, err := o.Limit(spec.Limit.Canonical())
	switch {
	case err != nil:
		return Bound{}, err
	case o == store.Deny:
		return Bound{}, cause
	case o == store.Allow:
		return Bound{Store: open{}, Binding: openOf(limit), Limit: limit, Name: spec.Name}, nil
	}
	l := localOf(s)
	local := localSpec(spec, limit)
	b, err := l.Bind(local)
	return Bound{Store: l, Binding: b, Limit: limit, Name: local.Name, Local: true}, err
}

// Settle returns the binding for units that were taken from a local Bound with this limit and name.
func Settle(s store.Store, limit algorithm.Limit, name string) (store.Binding, error) {
	return localOf(s).Bind(store.Spec{Limit: limit, Name: name})
}

// Decision returns the decision of a Bound.
func (b *Bound) Decision(v algorithm.Verdict) algorithm.Decision {
	d := v.Decision(b.Limit.Capacity())
	d.Failed, d.Local = true, b.Local
	return d
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

// Report stores the error of a store in the cause of the context, if it has one.
func Report(ctx context.Context, err error) {
	if cause, ok := ctx.Value(causeKey{}).(*error); ok {
		*cause = err
	}
}
