// Package swap makes a store of an engine that can compare and swap: records are loaded, the
// transition runs here in the process, and the new records are swapped in if the old ones are still
// there. docs/new-store.md is a guide to write a store with it.
//
// The records of bindings with a name are accounts. They have a head, which names the limit (see
// package store): a head and a state are one record, and are swapped together.
//
// Concurrent requests of one process that share a key are coalesced: while one swap is in progress
// the others queue, and the next swap carries all of them. So each process has at most one swap in
// progress for a key, however many requests come.
package swap

import (
	"context"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// An Engine stores records under the names of [store.Names]. It must bear concurrent calls.
type Engine interface {
	// Load returns the cell of each key, in the order of the keys, all of one instant if there are
	// several.
	Load(ctx context.Context, keys []Key) ([]Cell, error)
	// Swap replaces all records, or none: each Old, as Load returned it, by Next. It reports false if
	// one of the old records, head or state, is no longer there. The keys differ, and are sorted by
	// name. An empty Next stands for no record, and the old one is then not empty. The engine may
	// forget a record when its Life, counted from now, is over, and not before.
	// After an error the effect of the swap is unknown, unless the error is an ErrNothingDone.
	Swap(ctx context.Context, changes []Change) (swapped bool, err error)
}

// A Key is the place of a record.
type Key struct {
	Name string
	// Limit is a limit whose binding loads the record: for engines that store the state of each
	// algorithm in its own way.
	Limit *Limit
}

// A Limit is a limit bound to the store.
type Limit struct {
	Program  *algorithm.Program // ticks are microseconds
	Accounts bool               // the records are accounts
	Head     string             // of records that are nothing but a state of the limit; "" without Accounts
	Compiled any                // the result of Compile, if the engine is a Compiler
}

// A Record is the stored data of a key.
type Record struct {
	// Head is that of an account (see algorithm.Account.Head): printable ASCII, up to 512 KiB,
	// mostly the text of a limit. It is empty for bindings that keep no accounts.
	Head string
	// State may be empty if there is a head.
	State []int64
}

// Empty reports whether there is no record: the key was never seen.
func (r Record) Empty() bool { return len(r.Head) == 0 && len(r.State) == 0 }

func (r Record) equal(other Record) bool {
	return r.Head == other.Head && slices.Equal(r.State, other.State)
}

// A Cell is a record as an engine stores it.
type Cell struct {
	Record       // empty if there is none
	Token  any   // the engine's own, for Swap
	Now    int64 // the engine's time of the Load, in microseconds since the Unix epoch; the same in all cells

	// Foreign is the reason why the stored value is no record. The Record is then empty, and only a
	// Reset replaces the value.
	Foreign error
}

// A Change replaces a record.
type Change struct {
	Key
	Old  Cell
	Next Record
	Life time.Duration
}

// A Decider is an Engine that can carry out some requests in one step of its own: a fast path.
type Decider interface {
	// Decide carries out a request if it can, with the Verdict of each step and At. It reports false
	// if it has done nothing; the request then goes the way of Load and Swap. If it has loaded the
	// records, it may leave them in Found, a cell for each step.
	//
	// It decides on records of the Head of each step's limit, and on keys without a record; a Reset
	// removes any record. It never gets a request with a Reserve or Commit. Its errors follow the
	// rule of Swap.
	Decide(ctx context.Context, r *Request) (done bool, err error)
}

// A Slotter is an Engine that loads and swaps records together only if their slots are equal.
type Slotter interface {
	// Slot returns the slot of a name, or a number below 0 for a name that is alone.
	Slot(name string) int
}

// A Compiler is an Engine that prepares limits.
type Compiler interface {
	// Compile returns the value of [Limit.Compiled], or an error for a limit that the engine can't
	// keep exactly: a [*algorithm.LimitError] that names the field.
	Compile(spec store.Spec, p *algorithm.Program) (any, error)
}

// A Mode states how the steps of a request belong together.
type Mode uint8

// Modes of requests. In All and Look, a step that denies is still carried out, because some limits
// count denials; the Verdict of the others is that of a peek, unless all were charged.
const (
	Each Mode = iota // each step is carried out for itself, in their order
	All              // all steps are carried out if none denies
	Look             // none is, and denials are found
	view             // the state of one key is read
)

// A Request is one or several steps that are carried out at one instant.
type Request struct {
	Verb  string // for errors, such as "take"
	Mode  Mode
	Steps []Step
	At    int64  // result: the engine's time, in microseconds
	Found []Cell // result of a Decide that could not

	one [1]Step // memory for the Steps of most requests
}

// A Step is an operation on one key. Its times are in microseconds.
type Step struct {
	Key
	Op      algorithm.Op
	Now     int64             // time of the operation, or store.OwnClock for the engine's
	Verdict algorithm.Verdict // result

	state []int64 // result of a view
}

// Time returns the time of the step if the engine's is now.
func (s *Step) Time(now int64) int64 {
	if s.Now == store.OwnClock {
		return now
	}
	return s.Now
}

// peeks reports whether the step changes nothing, whatever the record.
func (s *Step) peeks() bool {
	return s.Op.Cost == 0 && s.Op.Kind != algorithm.Reset && !s.settles()
}

// settles reports whether the step is one of a reservation.
func (s *Step) settles() bool {
	return s.Op.Kind == algorithm.Reserve || s.Op.Kind == algorithm.Commit
}

// hopeless reports whether no state of the limit admits the step, so that it changes none.
func (s *Step) hopeless() bool {
	l := s.Limit.Program.Limit()
	switch s.Op.Kind {
	case algorithm.Take:
		return s.Op.Cost > l.Capacity()
	case algorithm.Renew:
		return s.Op.Cost > l.Capacity() || l.Algorithm != algorithm.Concurrent
	}
	return false
}
