// Package swap makes a store of an engine that can compare and swap: a state is loaded, the step is taken here, in
// the process, and the new state is swapped in if the old one is still there.
//
// The operations on one key that one process has at a time are put together: while one swap is under way the others
// queue, and the next swap carries all of them. So however many requests come, no more than one swap for each process
// competes for a key.
package swap

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// An Engine keeps states under names, which are those of [store.Names].
type Engine interface {
	// Load returns what is kept under a name.
	Load(ctx context.Context, name string) (Cell, error)
	// Swap replaces what Load returned by a new state, which is never empty if the old one was, and reports whether it was still
	// there. The engine may forget the new state when its life is over, and not before; an empty one at once.
	// Of a swap that ended in an error nobody knows whether it took effect.
	Swap(ctx context.Context, name string, old Cell, state []int64, life time.Duration) (swapped bool, err error)
}

// A Cell is a state as an engine keeps it.
type Cell struct {
	State []int64 // empty if there is none
	Token any     // the engine's own, for Swap
	Now   int64   // the engine's time when the state was read, in microseconds since the Unix epoch

	// Foreign is why what is kept is no state, if it is none. State is then empty; only a Reset swaps it, for an empty state.
	Foreign error
}

// A Decider is an Engine that can carry out some operations in one step of its own.
type Decider interface {
	// Decide carries out an operation on the state under a name if it can (done). now is in microseconds, or store.OwnClock; at is
	// the time at which the operation took effect. If it can't, it has done nothing, and the operation goes the way of load and swap.
	Decide(ctx context.Context, name string, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, done bool, err error)
}
