// Package store is the contract that makes an algorithm's transition atomic.
//
// A [Store] keeps one state for each (name, limit, key). It differs from another store only in how it makes the
// step from the old state to the new one atomic: what the step is, and everything that people read of it, comes
// from package algorithm. Package storetest holds a store to this contract.
//
// # What every store guarantees
//
//   - Operations on one state take effect one after another, each at one instant, whichever process they come from.
//   - The answer is the one that [algorithm.Program] gives for the state found and the time of the operation.
//   - A request that is denied, and one of cost 0, change nothing: no key is made, no expiry is moved.
//   - A state is forgotten only when it can't be told from that of a key never seen. A shared engine is told
//     when that will be, rounded up, with every write.
//   - Keys are bytes, and any bytes will do. Two different keys never share a state, nor do two names, nor a
//     name and a limit that together read like another pair.
//   - Time that steps back may deny for longer, and mints nothing.
//   - A slow or failing operation on one key does not hold up another key.
//
// # When a limit changes
//
// A binding with a name, other than one of shared debts, works on one state for (name, key), whatever its limit: an
// [algorithm.Account], which says whose state it is. What was used stays used when the limit of a name changes, and concurrent
// callers with different limits, as there are while a change spreads, find what the others have used. An admission makes the account
// one of its limit, and so does a denial whose wait is shorter under that; a peek changes nothing. A store keeps the account's head, its [algorithm.Account.Head], beside the state.
//
// # When an engine hangs or is absent
//
// A store with an engine is [Guarded]: a [Breaker] gives each call one timeout, refuses calls at once while the engine
// does not serve, and bounds the calls that wait for it.
//
// # What a binding may do besides
//
// The optional interfaces [Batcher], [Inspector], [Clock] and [Stamper] of a [Binding], and [Joiner], [Timekeeper],
// [Counter] and [Guarded] of a [Store], say more about a store than it must be able to. Who uses a store asks for them by type
// assertion, and does without where they are missing.
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
	// Name says whose states they are: bindings of equal name have one for a key, also if their limits differ, and what was used
	// under one limit is used under the other. Bindings without a name have one if their limits are equal. All others have
	// none in common.
	Name string
	// TimeDebt lets limits that differ share the state of equal names: what is kept is the time until
	// the key is fresh, whatever the limit, as redis-cell does. For the linear algorithms only. The interval
	// between units is then rounded up to a sixteenth of a nanosecond.
	TimeDebt bool
}

// A Store makes transitions atomic. It may be used by many goroutines at once.
type Store interface {
	// Bind prepares a limit. It refuses, with an error that says why, a limit that the store can't keep exactly:
	// an [*algorithm.LimitError] where the limit is at fault. It speaks to no engine.
	Bind(Spec) (Binding, error)
}

// A Binding is a limit prepared by a store.
//
// Callers give it valid operations: a known kind, a cost of 0 or more, a time that [Nanoseconds] returned or
// OwnClock, and in a Cancel or Renew an End, in a Reserve a Life of at least a microsecond, in nanoseconds, whatever the ticks of the store. Reserve and Commit are for
// bindings that keep accounts: others return [ErrUnnamed]. It must bear concurrent calls.
// A store that counts in microseconds rounds given times down.
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
	// TakeMany appends a decision for each request to decisions. On an error it returns the decisions of the requests before
	// the one that failed.
	TakeMany(ctx context.Context, requests []KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error)
}

// An Inspector is a Binding that can show a copy of a key's state, for programs that plan ahead, with the time
// at which it was read, in ticks of the Program.
type Inspector interface {
	// Inspect returns the state of key for use with the binding's Program, empty for a fresh key.
	Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error)
	// Program is what the state means.
	Program() *algorithm.Program
}

// A Clock is a Binding that can tell the time of its store, in nanoseconds since the Unix epoch, without asking an engine.
type Clock interface{ Now() int64 }

// A Stamper is a Binding that tells, with the verdict, the time at which an operation took effect by the store's clock, in
// nanoseconds since the Unix epoch. A Cancel needs it, and a store whose clock is an engine's can't be asked before.
type Stamper interface {
	DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error)
}

// A Timekeeper is a Store that says whether it lets callers tell the time of an operation. Stores that are none let them. One
// that does not returns [ErrClientTime] for any time but OwnClock.
type Timekeeper interface{ TrustsClientTime() bool }

// A Counter is a Store that counts what an operator should know.
type Counter interface{ Counts() Counts }

// Counts are since a store was made, except Calls.
type Counts struct {
	Healed    int64 // states that were further ahead than their limit allows, made full debt (see algorithm.Program.Heal)
	Conflicts int64 // swaps that lost to another process and were tried again
	Reloads   int64 // scripts that the engine had forgotten and was sent again
	Swept     int64 // states that were fresh again and were removed by this process
	Failures  int64 // operations that ended in an error of the engine, or of the way to it

	// The numbers of the store's circuit breaker: see Breaker.
	Timeouts       int64 // calls that the engine did not answer in time
	Disconnections int64 // calls that failed because a connection could not be made or was lost
	Unready        int64 // calls that an engine refused which refuses all, such as one that loads its data
	Rejections     int64 // calls that the engine refused for their own sake, such as one on a value of another type
	Opened         int64 // times that a circuit opened
	Refused        int64 // calls that were refused because the circuit was open
	Overflows      int64 // calls that were refused because too many waited
	Calls          int64 // calls that are in flight now
}

// ErrClientTime is the error for an operation that says its own time to a store that decides by its engine's clock.
var ErrClientTime = errors.New("weir: the store decides by its own clock; accepted: a time of the caller's only where the store is told to trust it (TrustClientTime)")

// ErrUnnamed is the error for a Reserve or Commit with a binding that keeps no accounts.
var ErrUnnamed = errors.New("weir: reservations are kept under the name of a limiter; accepted: a limiter that has one, and shares no debts")

// ErrNothingDone is in errors of operations that certainly took no effect. Of others it is unknown.
var ErrNothingDone = errors.New("nothing was changed")

// ErrTime is the error for a time that is too far from 1970 to be kept in nanoseconds, or in the thirds and quarters of one
// in which some limits count.
var ErrTime = errors.New("weir: time is out of reach: every limit reaches from 1947 to 2074, most from 1866")

// Accounts reports whether a binding for the spec keeps accounts.
func (s Spec) Accounts() bool { return s.Name != "" && !s.TimeDebt }

// Nanoseconds converts a time for a store. The second result is false for a time that a store can't keep.
func Nanoseconds(t time.Time) (int64, bool) {
	const most = algorithm.MaxTime / int64(time.Second)
	if s := t.Unix(); s >= most || s < -most {
		return 0, false
	}
	return t.UnixNano(), true
}

// Microseconds converts nanoseconds for a store that counts in microseconds. It rounds down, also before 1970.
func Microseconds(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}
