package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
)

// Through calls f as one call through a circuit: f is refused if the circuit is open or too many calls wait, and has
// the breaker's timeout. f must not use memory of the caller's, such as a key, that the caller may change after Through
// has returned, because f may still be under way then.
func Through[T any](ctx context.Context, c *Circuit, f func(context.Context) (T, error)) (result T, err error) {
	return through(ctx, c, CallTakeAll, f)
}

func through[T any](ctx context.Context, c *Circuit, kind CallKind, f func(context.Context) (T, error)) (result T, err error) {
	p, err := c.enter(ctx)
	if err != nil {
		return result, err
	}
	p.kind = kind
	if p.apart {
		return runApart(p, f)
	}
	err = errUnfinished
	defer func() { err = p.exit(err) }() //nolint:contextcheck // a check outlives the call
	result, err = f(p.ctx)               //nolint:contextcheck // it is derived from ctx
	return result, err
}

// errUnfinished is the error of a call that panics.
var errUnfinished = fmt.Errorf("weir: the call did not end: %w", errUnknownEffect)

// lateness is how long a call waits for f after the end of its context.
const lateness = 10 * time.Millisecond

// runApart runs f in a goroutine of its own, so that the call ends in time also if f does not: client libraries ignore
// contexts while they connect.
func runApart[T any](p *call, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = panics.Catch(func() (err error) {
			o.result, err = f(p.ctx)
			return err
		})
		p.ended()
		done <- o
	}()
	late := (<-chan time.Time)(nil)
	for ended := p.ctx.Done(); ; ended = nil {
		select {
		case o := <-done:
			o.err = p.exit(o.err)
			panics.Raise(o.err)
			return o.result, o.err
		case <-ended: // a library that minds the context may have more to say than that it has ended
			late = time.After(lateness)
			continue
		case <-late:
		}
		break
	}
	var none T
	return none, p.exit(fmt.Errorf("%s: %w; %w", p.circuit.engine(), p.ctx.Err(), errUnknownEffect))
}

// Bind wraps a binding, so that each of its operations is a call through a circuit: that of a key's node. The result
// is a Batcher, Inspector or Stamper if the binding is, and no Clock: a store that has the time without its engine
// does not need a breaker.
func (b *Breaker) Bind(inner Binding, circuit func(key string) *Circuit) Binding {
	g := &guard{inner: inner, breaker: b, circuit: circuit}
	batcher, batches := inner.(Batcher)
	inspector, inspects := inner.(Inspector)
	stamper, stamps := inner.(Stamper)
	batch, inspect, stamp := &guardedBatcher{g, batcher}, &guardedInspector{g, inspector}, &guardedStamper{g, stamper}
	switch [3]bool{batches, inspects, stamps} {
	case [3]bool{true, false, false}:
		return struct {
			*guard
			Batcher
		}{g, batch}
	case [3]bool{false, true, false}:
		return struct {
			*guard
			Inspector
		}{g, inspect}
	case [3]bool{true, true, false}:
		return struct {
			*guard
			Batcher
			Inspector
		}{g, batch, inspect}
	case [3]bool{false, false, true}:
		return struct {
			*guard
			Stamper
		}{g, stamp}
	case [3]bool{true, false, true}:
		return struct {
			*guard
			Batcher
			Stamper
		}{g, batch, stamp}
	case [3]bool{false, true, true}:
		return struct {
			*guard
			Inspector
			Stamper
		}{g, inspect, stamp}
	case [3]bool{true, true, true}:
		return struct {
			*guard
			Batcher
			Inspector
			Stamper
		}{g, batch, inspect, stamp}
	}
	return g
}

// Unwrap returns the binding that a Breaker wrapped, or b itself if none did.
func Unwrap(b Binding) Binding {
	if g, ok := b.(interface{ unwrap() *guard }); ok {
		return g.unwrap().inner
	}
	return b
}

// A guard is a binding whose operations are calls through a circuit.
type guard struct {
	inner   Binding
	breaker *Breaker
	circuit func(key string) *Circuit
}

func (g *guard) unwrap() *guard { return g }

// Do implements Binding.
func (g *guard) Do(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, err error) {
	p, err := g.circuit(key).enter(ctx)
	if err != nil {
		return v, err
	}
	p.op = op
	if p.apart {
		key = strings.Clone(key)
		return runApart(p, func(ctx context.Context) (algorithm.Verdict, error) { return g.inner.Do(ctx, key, op, now) })
	}
	err = errUnfinished
	defer func() { err = p.exit(err) }()     //nolint:contextcheck // a check outlives the call
	v, err = g.inner.Do(p.ctx, key, op, now) //nolint:contextcheck // it is derived from ctx
	return v, err
}

type guardedStamper struct {
	*guard
	stamper Stamper
}

type stampedVerdict struct {
	algorithm.Verdict
	at int64
}

// DoStamped implements Stamper.
func (g *guardedStamper) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	p, err := g.circuit(key).enter(ctx)
	if err != nil {
		return v, 0, err
	}
	p.op = op
	if p.apart {
		key = strings.Clone(key)
		r, err := runApart(p, func(ctx context.Context) (r stampedVerdict, err error) {
			r.Verdict, r.at, err = g.stamper.DoStamped(ctx, key, op, now)
			return r, err
		})
		return r.Verdict, r.at, err
	}
	err = errUnfinished
	defer func() { err = p.exit(err) }()                  //nolint:contextcheck // a check outlives the call
	v, at, err = g.stamper.DoStamped(p.ctx, key, op, now) //nolint:contextcheck // it is derived from ctx
	return v, at, err
}

type guardedInspector struct {
	*guard
	inspector Inspector
}

// Program implements Inspector.
func (g *guardedInspector) Program() *algorithm.Program { return g.inspector.Program() }

type inspection struct {
	state []int64
	at    int64
}

// Inspect implements Inspector.
func (g *guardedInspector) Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error) {
	key = strings.Clone(key)
	r, err := through(ctx, g.circuit(key), CallInspect, func(ctx context.Context) (r inspection, err error) {
		r.state, r.at, err = g.inspector.Inspect(ctx, key, now)
		return r, err
	})
	return r.state, r.at, err
}

type guardedBatcher struct {
	*guard
	batcher Batcher
}

// TakeMany implements Batcher. The requests for each node are a call, all within one timeout, so that a node that does not
// serve fails its own requests only. The decisions are those before the first request that failed.
func (g *guardedBatcher) TakeMany(ctx context.Context, requests []KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	if len(requests) == 0 {
		return decisions, nil
	}
	circuits := make([]*Circuit, len(requests))
	one := true
	for i := range requests {
		circuits[i] = g.circuit(requests[i].Key)
		one = one && circuits[i] == circuits[0]
	}
	if one {
		return g.takeMany(ctx, circuits[0], requests, now, decisions)
	}
	ctx, cancel := g.breaker.Within(ctx, g.breaker.options.Timeout)
	defer cancel()
	all, decided := make([]algorithm.Decision, len(requests)), make([]bool, len(requests))
	var failed error
	first := len(requests) // the first that failed
	for i, c := range circuits {
		if decided[i] || c == nil {
			continue
		}
		var places []int
		var group []KeyCost
		for j := i; j < len(requests); j++ {
			if circuits[j] == c {
				places, group, circuits[j] = append(places, j), append(group, requests[j]), nil
			}
		}
		made, err := g.takeMany(ctx, c, group, now, nil)
		for n, d := range made {
			all[places[n]], decided[places[n]] = d, true
		}
		if err != nil && places[len(made)] < first {
			first, failed = places[len(made)], err
		}
	}
	if failed != nil && slices.Contains(decided, true) {
		failed = &partialError{failed}
	}
	return append(decisions, all[:first]...), failed
}

func (g *guardedBatcher) takeMany(
	ctx context.Context, c *Circuit, requests []KeyCost, now int64, decisions []algorithm.Decision,
) (_ []algorithm.Decision, err error) {
	p, err := c.enter(ctx)
	if err != nil {
		return decisions, err
	}
	p.kind = CallTakeMany
	if p.apart {
		requests = slices.Clone(requests)
		for i := range requests {
			requests[i].Key = strings.Clone(requests[i].Key)
		}
		made, err := runApart(p, func(ctx context.Context) ([]algorithm.Decision, error) {
			return g.batcher.TakeMany(ctx, requests, now, nil)
		})
		return append(decisions, made...), err
	}
	err = errUnfinished
	defer func() { err = p.exit(err) }()                                 //nolint:contextcheck // a check outlives the call
	decisions, err = g.batcher.TakeMany(p.ctx, requests, now, decisions) //nolint:contextcheck // it is derived from ctx
	return decisions, err
}

// A partialError is the error of a batch of which some requests were decided.
type partialError struct{ cause error }

func (e *partialError) Error() string {
	return "weir: other requests of the batch were decided: " + strings.ReplaceAll(e.cause.Error(), "; "+ErrNothingDone.Error(), "")
}

// Is and As find what is in the cause, except that nothing was done.
func (e *partialError) Is(target error) bool {
	return target != ErrNothingDone && errors.Is(e.cause, target)
}

func (e *partialError) As(target any) bool { return errors.As(e.cause, target) }
