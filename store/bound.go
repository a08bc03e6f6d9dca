package store

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
)

// A Bound is a limit that a store has bound, with the optional interfaces of its Binding. It never
// changes, so an operation that uses one Bound decides under one limit. It may be used by many
// goroutines at once.
type Bound struct {
	Binding
	Spec // its Limit is in canonical form

	Store    Store
	Capacity int64 // of the limit, in units
	// OnError is the decision while the store fails, unless a call has its own ([WithOnError]).
	OnError OnError

	// The Binding as each of the optional interfaces; nil if it has none of that kind.
	Batcher   Batcher
	Stamper   Stamper
	Clock     Clock
	Inspector Inspector

	// Failed marks a Bound that decides in place of a store that failed: in the memory of the
	// process if Local is set, and otherwise by allowing all requests.
	Failed, Local bool

	text string // of the limit
}

// Bind returns the limit of the spec bound to the store. The error is that of [Store.Bind], or a
// [*algorithm.LimitError] for a limit without the share of on.
func Bind(s Store, spec Spec, on OnError) (*Bound, error) {
	binding, err := s.Bind(spec)
	if err != nil {
		return nil, err
	}
	spec.Limit = spec.Limit.Canonical()
	if _, err := on.Limit(spec.Limit); err != nil {
		return nil, err
	}
	b := &Bound{Binding: binding, Spec: spec, Store: s, Capacity: spec.Limit.Capacity(), OnError: on, text: spec.Limit.String()}
	b.Batcher, _ = binding.(Batcher)
	b.Stamper, _ = binding.(Stamper)
	b.Clock, _ = binding.(Clock)
	b.Inspector, _ = binding.(Inspector)
	return b, nil
}

// Text returns the text of the limit.
func (b *Bound) Text() string {
	if b.text == "" {
		return b.Limit.String()
	}
	return b.text
}

// Decision derives the decision of a verdict of the Binding.
func (b *Bound) Decision(v algorithm.Verdict) algorithm.Decision {
	d := v.Decision(b.Capacity)
	d.Failed, d.Local = b.Failed, b.Local
	return d
}

// Part returns a take of the cost as a part of a joint take.
func (b *Bound) Part(key string, cost int64) Part {
	return Part{Store: b.Store, Binding: b.Binding, Limit: b.Limit, Name: b.Name, Key: key, Cost: cost}
}

// DoStamped is Do, and returns the time of the operation by the store's clock, in nanoseconds since
// the Unix epoch; OwnClock if the store does not return its time.
func (b *Bound) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	if now == OwnClock && b.Clock != nil {
		now = b.Clock.Now()
	}
	if now == OwnClock && b.Stamper != nil {
		return b.Stamper.DoStamped(ctx, key, op, now)
	}
	v, err = b.Do(ctx, key, op, now)
	return v, now, err
}

// TakeMany appends a decision for each request, as a [Batcher] does, whether the Binding is one or
// not.
func (b *Bound) TakeMany(ctx context.Context, requests []KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	if b.Batcher != nil && len(requests) > 1 {
		return b.Batcher.TakeMany(ctx, requests, now, decisions)
	}
	for _, r := range requests {
		v, err := b.Do(ctx, r.Key, algorithm.Op{Cost: r.Cost}, now)
		if err != nil {
			return decisions, err
		}
		decisions = append(decisions, b.Decision(v))
	}
	return decisions, nil
}
