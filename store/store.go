// Package store is the contract that makes an algorithm's transition atomic.
//
// A [Store] keeps one state for each (name, limit, key). It differs from another store only in how it makes the
// step from the old state to the new one atomic: what the step is, and everything that people read of it, comes
// from package algorithm.
package store

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// OwnClock as the time of an operation means: now, by the clock of the store.
const OwnClock int64 = math.MinInt64

// A Spec names a limit and says whose state it works on.
type Spec struct {
	// Limit is what to enforce.
	Limit algorithm.Limit
	// Name separates states that would otherwise be shared: bindings of equal name and equal limit have one
	// state for a key, all others have none in common.
	Name string
	// TimeDebt lets limits that differ share the state of equal names: what is kept is the time until
	// the key is fresh, whatever the limit, as redis-cell does. For the linear algorithms only. The interval
	// between units is then rounded up to a sixteenth of a nanosecond.
	TimeDebt bool
}

// A Store makes transitions atomic. It may be used by many goroutines at once.
type Store interface {
	// Bind prepares a limit. It refuses, with an error that says why, a limit that the store can't keep exactly.
	Bind(Spec) (Binding, error)
}

// A Binding is a limit prepared by a store.
//
// Callers give it valid operations: a known kind, a cost of 0 or more, a time that [Nanoseconds] returned or
// OwnClock. It must bear concurrent calls; operations on one key take effect one after another.
type Binding interface {
	// Do carries out one operation on the key's state, at now (nanoseconds since the Unix epoch). It must not keep the
	// key after it returns: the caller may use its memory again.
	// On an error, whether the operation took effect is unknown unless the error says so.
	Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error)
}

// A KeyCost is one request of a batch.
type KeyCost struct {
	Key  string
	Cost int64
}

// A Batcher is a Binding that decides many requests faster together than one by one. Each request
// is atomic, the batch is not; requests of one batch for one key are decided in their order.
type Batcher interface {
	// TakeMany appends a decision for each request to decisions.
	TakeMany(ctx context.Context, requests []KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error)
}

// An Inspector is a Binding that can show a copy of a key's state, for programs that plan ahead, with the time
// (nanoseconds since the Unix epoch) at which it was read.
type Inspector interface {
	// Inspect returns the state of key for use with the binding's Program, empty for a fresh key.
	Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error)
	// Program is what the state means.
	Program() *algorithm.Program
}

// A Clock is a Binding that can tell the time of its store, in nanoseconds since the Unix epoch.
type Clock interface{ Now() int64 }

// ErrTime is the error for a time that is too far from 1970 to be kept in nanoseconds, or in the thirds and quarters of one
// in which some limits count.
var ErrTime = errors.New("weir: time is out of reach: every limit reaches from 1947 to 2074, most from 1866")

// Nanoseconds converts a time for a store. The second result is false for a time that a store can't keep.
func Nanoseconds(t time.Time) (int64, bool) {
	const most = algorithm.MaxTime / int64(time.Second)
	if s := t.Unix(); s >= most || s < -most {
		return 0, false
	}
	return t.UnixNano(), true
}
