// Package swap makes a store of an engine that can compare and swap: a state is loaded, the step is taken here, in
// the process, and the new state is swapped in if the old one is still there. The states of bindings with a name are accounts, and have
// a head that says of which limit they are (see package store): a head and a state are one record, and are swapped together.
//
// The operations on one key that one process has at a time are put together: while one swap is under way the others
// queue, and the next swap carries all of them. So however many requests come, no more than one swap for each process
// competes for a key.
package swap

import (
	"context"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// An Engine keeps records under names, which are those of [store.Names].
type Engine interface {
	// Load returns what is kept under a name.
	Load(ctx context.Context, name string) (Cell, error)
	// Swap replaces what Load returned by the next record, which is never empty if the old one was, and reports whether the old one,
	// head and state, was still there. The engine may forget the next one when its life is over, and not before; an empty one at once.
	// Of a swap that ended in an error nobody knows whether it took effect.
	Swap(ctx context.Context, name string, old Cell, next Record, life time.Duration) (swapped bool, err error)
}

// A Record is what is kept under a name.
type Record struct {
	// Head is that of an account (see algorithm.Account.Head): printable ASCII, up to 256 KiB, mostly the text of a limit.
	// It is empty for states of bindings that keep no accounts.
	Head string
	// State may be empty where there is a head.
	State []int64
}

// Empty reports whether the record is none: it is that of a key never seen.
func (r Record) Empty() bool { return len(r.Head) == 0 && len(r.State) == 0 }

func (r Record) equal(other Record) bool {
	return r.Head == other.Head && slices.Equal(r.State, other.State)
}

// A Cell is a record as an engine keeps it.
type Cell struct {
	Record       // empty if there is none
	Token  any   // the engine's own, for Swap
	Now    int64 // the engine's time when the record was read, in microseconds since the Unix epoch

	// Foreign is why what is kept is no record, if it is none. The Record is then empty; only a Reset swaps it, for what is left after it.
	Foreign error
}

// A Decider is an Engine that can carry out some operations in one step of its own.
type Decider interface {
	// Decide carries out an operation on the record under a name if it can (done). head is that of the records on which p may decide: what it
	// writes has this head. If there is a record with another head it can't decide, unless the operation is a Reset, which forgets any.
	// now is in microseconds, or store.OwnClock; at is the time at which the operation took effect. If it can't, it has done nothing,
	// and the operation goes the way of load and swap, as those do of which it is never asked: a Reserve, a Commit.
	Decide(ctx context.Context, name, head string, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, done bool, err error)
}
