// Package weir decides whether a request may pass: no more than so many, per client, exactly.
//
//	limiter, err := weir.New(weir.MustParseLimit("100/1m"))
//	d, err := limiter.Take(ctx, "user:42", 1)
//	if err == nil && !d.Allowed {
//		// come back after d.RetryAfter
//	}
//
// A [Limit] is at most Count units per Period, under one of sixteen algorithms; [ParseLimit] reads its text form. A
// [Limiter] enforces one limit on any number of keys: who is limited, such as a user, an address or an API key. A request
// takes units, its cost. The [Decision] says whether it may pass, what remains, and when to come back. A denial is a
// decision and costs nothing; an error means that none could be made, and it is for the program to say what happens then.
//
// # Which method
//
//   - [Limiter.Take] asks, and takes the cost or nothing. Most programs need no other.
//   - [Limiter.Allow] is a Take of 1 with a bool as its result, for programs that need neither the error nor
//     the Decision.
//   - [Limiter.TakeMany] asks for many keys at once, faster; [Limiter.TakeUpTo] takes what there is.
//   - [Limiter.Peek] looks and changes nothing; [Limiter.Refund] gives back; [Limiter.Reset] forgets the key.
//   - [Limiter.Wait] blocks until the request may pass, first in, first out. "10/1s" begins with a
//     burst of 10; "10/1s burst=1" spaces requests evenly from the first on.
//   - [Limiter.Acquire] blocks until a concurrent limit has a place, and returns a [Lease], which is
//     renewed until its Release.
//   - [Limiter.Reserve] is a Take that can be cancelled, for work that may not happen, and of a concurrent limit for work that is in flight.
//   - [Limiter.Hold] takes an estimate, for work whose cost is known at its end.
//   - [Limiter.SetLimit] changes the limit while it is used; what was used stays used.
//
// Those that end in At take the time as an argument, for tests, replays and simulations.
//
// # Where the state is
//
// In the memory of the process, unless [WithStore] says otherwise; see package store/memory for its bounds and its
// clocks. A limiter made without a store has one of its own. Limiters of one name ([WithName]) on one store share a key's state, also when their
// limits differ: what was used stays used when a limit changes. Those without a name share it if their limits are equal.
//
// # While the store fails
//
// Methods return the error of the store. With [WithOnStoreError], or for a call with
// store.WithOnError, they allow all requests, or enforce the limit, or a share of it, in the memory of
// the process. The Decision is then Failed, and Local if the limit was enforced.
//
// # Exactness
//
// Rates are exact fractions, whatever the count and the period. At most the bound of the algorithm is admitted (see
// docs/algorithms.md), however many goroutines ask at once; time that steps back may deny a key for longer, and mints
// nothing. RetryAfter is enough and not a nanosecond longer than needed, if no other request comes; Remaining would pass.
package weir

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A Limit says: at most Count units per Period, under an Algorithm. See [ParseLimit] for its text form.
type Limit = algorithm.Limit

// An Algorithm is a rate-limiting algorithm, by the name that the limit text uses.
type Algorithm = algorithm.Algorithm

// The algorithms; docs/algorithms.md compares them.
const (
	TokenBucket    = algorithm.TokenBucket
	GCRA           = algorithm.GCRA
	LeakyBucket    = algorithm.LeakyBucket
	LeakyQueue     = algorithm.LeakyQueue
	Cooldown       = algorithm.Cooldown
	MinInterval    = algorithm.MinInterval
	RefillBucket   = algorithm.RefillBucket
	FixedWindow    = algorithm.FixedWindow
	QuotaReset     = algorithm.QuotaReset
	SlidingLog     = algorithm.SlidingLog
	SlidingWindow  = algorithm.SlidingWindow
	SlidingBuckets = algorithm.SlidingBuckets
	Hybrid         = algorithm.Hybrid
	Exponential    = algorithm.Exponential
	Calendar       = algorithm.Calendar
	Concurrent     = algorithm.Concurrent
)

// A Decision is the answer to one request. A denial is a Decision; an error means that none could be made.
type Decision = algorithm.Decision

// A LimitError says which field of a limit makes no sense, what it was, and what would be accepted.
type LimitError = algorithm.LimitError

// A Request is one request of a batch: a key and what it costs.
type Request = store.KeyCost

// Never is the RetryAfter of a request that can never pass, because it costs more than the limit's capacity.
const Never = algorithm.Never

// ErrTime is the error for a time that is too far from 1970: every limit reaches from 1947 to 2074, most from 1866.
var ErrTime = store.ErrTime

// ErrClientTime is the error for a time that the caller says (WithClock, TakeAt) to a store that decides by its engine's clock.
var ErrClientTime = store.ErrClientTime

// ParseLimit reads the limit text:
//
//	[algorithm] count/period [burst=n] [queue=n] [cells=n] [strict]
//	[calendar] count/day|week|month|year [tz=zone] [anchor=n]
//	concurrent count lease=duration
//
// as in "100/1m" (a token bucket), "gcra 10/1s burst=20", "sliding-buckets 100/1m cells=60", "10000/month",
// "500/day tz=Europe/Berlin anchor=15" or "concurrent 10 lease=30s". The period is a Go duration; a bare unit stands for one of it ("10/s"). Limit.String
// writes the text back.
func ParseLimit(text string) (Limit, error) { return algorithm.ParseLimit(text) }

// MustParseLimit is ParseLimit for a text known to be right; it panics on any other.
func MustParseLimit(text string) Limit { return algorithm.MustParseLimit(text) }

// A CostError reports a negative cost. Only Refund gives units back.
type CostError struct{ Cost int64 }

// Error implements error.
func (e *CostError) Error() string {
	return fmt.Sprintf("weir: cost is %d; accepted: 0 (a peek) or more; Refund gives units back", e.Cost)
}

// errNoLimit is the error of all methods of a nil Limiter and of the zero Limiter.
var errNoLimit = errors.New("weir: the Limiter is nil or the zero Limiter, and has no limit; accepted: a Limiter that New returned")

// A Limiter enforces one limit on any number of keys. It may be used by many goroutines at once.
// Make a Limiter with New: all methods of a nil Limiter and of the zero Limiter return an error.
//
// Any text is a key, also "". All requests of one key share one budget: with "" for unknown clients
// a program counts them together, as one client.
//
// Each method whose name ends in At takes the time as an argument; the one without adds the time of the
// limiter's clock, which is the store's own unless WithClock says otherwise. A key's operations should all come
// from one clock. Time that steps back may deny a key for longer; it never admits more.
type Limiter struct {
	bound atomic.Pointer[store.Bound] // the limit in force
	now   func() time.Time            // nil: the store's own clock
	lines lines
}

type options struct {
	store   store.Store
	now     func() time.Time
	name    string
	named   bool // WithName was given
	onError store.OnError
}

// An Option changes what New builds.
type Option func(*options)

// WithStore keeps the limiter's state in s. The default is a store in memory of its own.
func WithStore(s store.Store) Option { return func(o *options) { o.store = s } }

// WithClock takes the time from now instead of the store's clock. With a store that several processes share,
// their clocks must then agree.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// WithName keeps the limiter's state under a name, which all limiters of the name share that are on the same store, whatever their limits: a limit
// can change (see [Limiter.SetLimit]), and what was used stays used. The state of others, also of equal limit, is apart.
// New refuses the name "": a limiter without a name has no WithName.
func WithName(name string) Option { return func(o *options) { o.name, o.named = name, true } }

// WithOnStoreError sets the decision while the store fails: [store.Deny], [store.Allow],
// [store.Local], or a [store.LocalShare] of the limit for this process. The default is store.Deny:
// methods return the error of the store. A call has a decision of its own in the context of
// [store.WithOnError].
//
// A decision without the store is Failed, and Local if the limit was enforced in the memory of this
// process. It is made after the store has failed, not in place of a call to it. It applies to all
// methods that take or peek. Refund and Reset return the error of the store, and so do
// settlements and renewals of units that the store has. Units taken locally are settled locally.
//
// All limiters on one store have the same local limits: up to 64 MB, which are kept for an hour
// after their last use. Errors of the caller are no failure of the store (see [store.IsFailure]).
func WithOnStoreError(o store.OnError) Option { return func(opts *options) { opts.onError = o } }

// New returns a limiter. It returns a *LimitError for an invalid limit, and for a Period without a
// unit, such as 60 for 60 * time.Second (see [algorithm.Limit.Validate]). It returns an error for a
// limit without the share of [WithOnStoreError].
func New(limit Limit, opts ...Option) (*Limiter, error) {
	var o options
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("weir: option %d of New is nil; accepted: an option such as WithStore, or none", i+1)
		}
		opt(&o)
	}
	if o.named && o.name == "" {
		return nil, errors.New(`weir: WithName: the name is ""; accepted: a name of 1 byte or more, or no WithName for a limiter without a name`)
	}
	if o.store == nil {
		o.store = memory.New(memory.Options{})
	}
	b, err := bind(o.store, limit, o.name, o.onError)
	if err != nil {
		return nil, err
	}
	if keeper, ok := o.store.(store.Timekeeper); ok && o.now != nil && !keeper.TrustsClientTime() {
		return nil, fmt.Errorf("weir: WithClock: %w", ErrClientTime)
	}
	l := &Limiter{now: o.now}
	l.bound.Store(b)
	return l, nil
}

// Limit returns the limit in force, in canonical form. That of the zero Limiter, which has none, is the zero Limit.
func (l *Limiter) Limit() Limit {
	if b := l.Bound(); b != nil {
		return b.Limit
	}
	return Limit{}
}

// Bound returns the limit in force, bound to the limiter's store; nil for the zero Limiter.
// Operations on it use the store's clock, whatever WithClock sets, and are not seen by those who Wait.
func (l *Limiter) Bound() *store.Bound {
	if l == nil {
		return nil
	}
	return l.bound.Load()
}

// Name returns the name that the limiter's state is under (WithName), or "" if it has none.
func (l *Limiter) Name() string {
	if b := l.Bound(); b != nil {
		return b.Name
	}
	return ""
}

func bind(s store.Store, limit Limit, name string, on store.OnError) (*store.Bound, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	return store.Bind(s, store.Spec{Limit: limit, Name: name}, on)
}

// decision derives what people read, unless err is set.
func decision(b *store.Bound, v algorithm.Verdict, err error) (Decision, error) {
	if err != nil {
		return Decision{}, err
	}
	return b.Decision(v), nil
}

// An unnamedError is that of a SetLimit of a limiter without a name.
type unnamedError struct{}

// Error implements error.
func (unnamedError) Error() string {
	return "weir: the limit of a limiter without a name is the name of its states; accepted: a limiter that has one (WithName), for its limit to change"
}

// Is says that it is an ErrUnnamed.
func (unnamedError) Is(target error) bool { return target == ErrUnnamed }

// SetLimit changes the limit of a limiter that has a name (else the error is [ErrUnnamed]), for all that is asked from now on. What was used stays
// used, in units, at most the new capacity: a raise is there at once, and nobody begins anew. If the limit makes no sense, which is
// a [*LimitError], or the store can't keep it, or it has no share for [WithOnStoreError], nothing changes. It asks no engine.
//
// It is the limit of this Limiter alone. Others of the name, here or in other processes, keep theirs until they are told, and find
// what this one admits (see docs/algorithms.md).
//
// Those who Wait ask again at once, first in, first out: after a raise they may pass earlier. After a change that makes it certain that a
// wait would outlast its deadline, or a cost above the capacity, Wait returns at once. Slots of a leaky-queue for which requests Wait come earlier if the
// next limit has a faster rate (Count per Period, of any algorithm but concurrent), and then follow each other at that; else they stay as they are. Who comes to Wait meanwhile, under
// any limit but a concurrent one, starts after them. Take goes by the store alone: a Delay that it has returned can't change, and it may return one by which the
// request starts sooner after a slot whose time has changed than any of the limits lets it. Reservations and holds made before are settled as ever; a lease that is renewed is one of the limit under which it was taken.
func (l *Limiter) SetLimit(limit Limit) error {
	old := l.Bound()
	switch {
	case old == nil:
		return errNoLimit
	case old.Name == "":
		return unnamedError{}
	}
	b, err := bind(old.Store, limit, old.Name, old.OnError)
	if err != nil {
		return err
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if b.Limit == l.Limit() {
		return nil
	}
	l.bound.Store(b)
	l.lines.changed = true
	for _, n := range l.lines.byKey {
		n.hasten(b)
		n.changed()
	}
	return nil
}
