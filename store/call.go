package store

import (
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A CallKind is the method that a call through a Breaker is of.
type CallKind uint8

// Kinds of calls.
const (
	CallDo       CallKind = iota // of Binding.Do and Stamper.DoStamped
	CallTakeMany                 // of Batcher.TakeMany
	CallTakeAll                  // of Joiner.TakeAll
	CallInspect                  // of Inspector.Inspect
)

// A Call is a call through a Breaker that has ended. Calls that a Breaker refuses are none.
type Call struct {
	Kind CallKind
	// Op is the operation of a CallDo.
	Op algorithm.Op
	// Took is the duration.
	Took time.Duration
	// Err is the error of a call that failed, and Cause its cause. Nil: it did not fail.
	Err   error
	Cause Cause
}

// Observe has f called with each call when it ends, in the goroutine of the call. f must not block. A second Observe
// replaces the first.
func (b *Breaker) Observe(f func(Call)) { b.observer.Store(&f) }

// observed reports a call that has ended.
func (p *call) observed(cause Cause, err error) {
	if f := p.circuit.breaker.observer.Load(); f != nil {
		(*f)(Call{Kind: p.kind, Op: p.op, Took: time.Since(p.began), Err: err, Cause: cause})
	}
}
