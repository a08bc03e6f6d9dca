package weir

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
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

// Allow reports whether the key may pass now, and takes a cost of 1 if so. It is [Limiter.Take] for
// programs that need only yes or no.
//
// It returns false also if no decision could be made: the store failed, or ctx has ended. The error
// is lost, and so are Remaining and RetryAfter. Under a leaky-queue the Delay is lost too, which
// [Limiter.Wait] waits for, and a place of a concurrent limit stays taken until its lease ends;
// [Limiter.Acquire] returns a Lease, to be released.
func (l *Limiter) Allow(ctx context.Context, key string) bool {
	d, err := l.Take(ctx, key, 1)
	return err == nil && d.Allowed
}

// Take asks to pass at the cost, now. It takes the whole cost, or nothing.
func (l *Limiter) Take(ctx context.Context, key string, cost int64) (d Decision, err error) {
	b := l.Bound()
	if b == nil || l.now != nil || cost < 0 || ctx.Err() != nil {
		return l.takeAt(ctx, key, cost, l.clock())
	}
	v, err := b.Do(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, store.OwnClock) // takeAt, without the call
	if err == nil {
		v.Read(&d, b.Capacity)
		return d, nil
	}
	b, v, err = decide.Fallback(ctx, b, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, store.OwnClock, err)
	return decision(b, v, err)
}

// TakeAt is Take at a time.
func (l *Limiter) TakeAt(ctx context.Context, key string, cost int64, now time.Time) (Decision, error) {
	return l.takeAt(ctx, key, cost, nanoseconds(now))
}

// Peek returns what stands for the key, now, and changes nothing. It is a Take of cost 0.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	return l.Take(ctx, key, 0)
}

// PeekAt is Peek at a time.
func (l *Limiter) PeekAt(ctx context.Context, key string, now time.Time) (Decision, error) {
	return l.TakeAt(ctx, key, 0, now)
}

// TakeUpTo takes as much of the cost as there is room for, now, and returns how much that was. When there is
// room for none it is denied as a Take of 1 would be.
func (l *Limiter) TakeUpTo(ctx context.Context, key string, cost int64) (granted int64, d Decision, err error) {
	return l.takeUpTo(ctx, key, cost, l.clock())
}

// TakeUpToAt is TakeUpTo at a time.
func (l *Limiter) TakeUpToAt(ctx context.Context, key string, cost int64, now time.Time) (granted int64, d Decision, err error) {
	return l.takeUpTo(ctx, key, cost, nanoseconds(now))
}

func (l *Limiter) takeUpTo(ctx context.Context, key string, cost, now int64) (granted int64, d Decision, err error) {
	b, v, err := l.take(ctx, key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}, now)
	d, err = decision(b, v, err)
	return max(0, v.Granted), d, err
}

// Refund gives back units that were taken and not used, newest first, at most to the full capacity. The decision
// is what stands afterwards.
func (l *Limiter) Refund(ctx context.Context, key string, cost int64) (Decision, error) {
	return l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Refund, Cost: cost}, l.clock())
}

// RefundAt is Refund at a time.
func (l *Limiter) RefundAt(ctx context.Context, key string, cost int64, now time.Time) (Decision, error) {
	return l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Refund, Cost: cost}, nanoseconds(now))
}

// Reset forgets the key: its next request finds a fresh one.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	_, err := l.settle(ctx, l.Bound(), key, algorithm.Op{Kind: algorithm.Reset}, l.clock())
	return err
}

func (l *Limiter) takeAt(ctx context.Context, key string, cost, now int64) (Decision, error) {
	b, v, err := l.take(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, now)
	return decision(b, v, err)
}

// take carries out an operation that takes units, with the store or in place of it, and returns the
// bound that decided.
func (l *Limiter) take(ctx context.Context, key string, op algorithm.Op, now int64) (*store.Bound, algorithm.Verdict, error) {
	b := l.Bound()
	if err := check(ctx, b, op.Cost, now); err != nil {
		return nil, algorithm.Verdict{}, err
	}
	return decide.Do(ctx, b, key, op, now)
}

// settle carries out an operation that only the store of b decides. Units may come back by it.
func (l *Limiter) settle(ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64) (Decision, error) {
	if err := check(ctx, b, op.Cost, now); err != nil {
		return Decision{}, err
	}
	if op.Kind != algorithm.Reserve {
		defer l.lines.stir(key)
	}
	v, err := b.Do(ctx, key, op, now)
	return decision(b, v, err)
}

// outOfReach is a time that no store can keep.
const outOfReach = store.OwnClock + 1

// nanoseconds returns a time for a store, or outOfReach.
func nanoseconds(t time.Time) int64 {
	if at, ok := store.Nanoseconds(t); ok {
		return at
	}
	return outOfReach
}

// clock returns the time of WithClock for a store, or store.OwnClock.
func (l *Limiter) clock() int64 {
	if l == nil || l.now == nil {
		return store.OwnClock
	}
	return nanoseconds(l.now())
}

// check returns an error for a missing limit, a negative cost, an ended context, or a time out of
// reach, which must not reach a store.
func check(ctx context.Context, b *store.Bound, cost, now int64) error {
	switch {
	case b == nil:
		return errNoLimit
	case cost < 0:
		return &CostError{cost}
	case ctx.Err() != nil:
		return ctx.Err()
	case now == outOfReach:
		return ErrTime
	}
	return nil
}

// TakeMany decides many requests, now, and appends a decision for each to decisions, in their order. In
// memory this is faster than one by one, because it waits for the memory of many keys at once. Each request
// is all or nothing; the batch is not.
func (l *Limiter) TakeMany(ctx context.Context, requests []Request, decisions []Decision) ([]Decision, error) {
	return l.takeMany(ctx, requests, l.clock(), decisions)
}

// TakeManyAt is TakeMany at a time.
func (l *Limiter) TakeManyAt(ctx context.Context, requests []Request, now time.Time, decisions []Decision) ([]Decision, error) {
	return l.takeMany(ctx, requests, nanoseconds(now), decisions)
}

func (l *Limiter) takeMany(ctx context.Context, requests []Request, now int64, decisions []Decision) ([]Decision, error) {
	b := l.Bound()
	if b == nil {
		return decisions, errNoLimit
	}
	if now == outOfReach {
		return decisions, ErrTime
	}
	for _, r := range requests {
		if err := check(ctx, b, r.Cost, now); err != nil {
			return decisions, err
		}
	}
	first := len(decisions)
	decisions, err := b.TakeMany(ctx, requests, now, decisions)
	if err == nil {
		return decisions, nil
	}
	by, err := decide.Without(ctx, b, store.OnErrorOf(ctx, b.OnError), err)
	if err != nil {
		return decisions, err
	}
	return by.TakeMany(ctx, requests[len(decisions)-first:], now, decisions)
}

// Name returns the name that the limiter's state is under (WithName), or "" if it has none.
func (l *Limiter) Name() string {
	if b := l.Bound(); b != nil {
		return b.Name
	}
	return ""
}
