package swap

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

const (
	// DefaultTimeout bounds an operation if Options.Timeout is 0.
	DefaultTimeout = time.Second
	// trustedGrace is added to the life of records whose times are those of callers.
	trustedGrace = 24 * time.Hour
)

// Options for New. The zero value is good for an engine whose time is the clock of each process.
type Options struct {
	// Engine is in errors, such as "redis at 10.0.0.7:6379"; "" is "weir".
	Engine string
	// Prefix separates programs that share an engine; "" is store.DefaultPrefix. Bind refuses a
	// prefix that store.CheckPrefix does not accept.
	Prefix string
	// TrustClientTime lets callers give the time of an operation. All callers must have one clock
	// then. Records live a day longer, because that clock is not the engine's.
	TrustClientTime bool
	// SharedClock states that Cell.Now is of one clock for all processes. Only then are states
	// healed that are further ahead than their limit allows (see algorithm.Program.Heal), and not
	// with TrustClientTime.
	SharedClock bool
	// Timeout bounds one operation, queueing included; 0 or less means DefaultTimeout.
	Timeout time.Duration
	// Grace is added to the life of records: by as much as the clocks of processes may differ.
	Grace time.Duration
	// Breaker, if not nil, guards all operations. Circuit returns the circuit for a name.
	Breaker *store.Breaker
	Circuit func(name string) *store.Circuit
	// Direct makes requests go to the Decider at once and concurrently, for engines that run them in
	// turn by themselves. Only the requests that it can't decide are coalesced. If false, requests
	// are coalesced first, and the Decider gets those that are alone.
	Direct bool
	// TurnAfter is the number of lost swaps after which a joint take is carried out by
	// store.TakeInTurn, for an engine on which a part can be locked for long; 0 means never.
	TurnAfter int
}

func (o Options) withDefaults() Options {
	if o.Engine == "" {
		o.Engine = "weir"
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.Grace = max(0, o.Grace)
	if o.TrustClientTime {
		o.Grace += trustedGrace
	}
	return o
}

// A Store is a [store.Store] on an engine. It is a [store.Joiner], [store.Timekeeper] and
// [store.Counter], and its bindings are a [store.Stamper] and a [store.Inspector]; those of an engine
// with a direct Decider are a [store.Batcher] too.
//
// An operation whose context ends, or whose time is over, while it queues has done nothing: the error
// is an [ErrNothingDone]. If it is already on its way to the engine, the caller gets an error at once
// too, but the effect is unknown: the operation goes on, together with those of other callers.
type Store struct {
	engine   Engine
	decider  Decider  // the engine, if it is one
	slotter  Slotter  // the same
	compiler Compiler // the same
	options  Options
	queue    queue
	recent   *recent

	healed, conflicts, failures atomic.Int64
}

// New returns a store on the engine.
func New(engine Engine, o Options) *Store {
	o = o.withDefaults()
	s := &Store{engine: engine, options: o, queue: queue{busy: map[string][]*call{}}, recent: newRecent(o.Timeout)}
	s.decider, _ = engine.(Decider)
	s.slotter, _ = engine.(Slotter)
	s.compiler, _ = engine.(Compiler)
	return s
}

// Bind implements [store.Store]. Every limit that makes sense in microseconds is kept exactly, if the
// engine does not refuse it.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	names, err := store.NewNames(s.options.Prefix, spec)
	if err != nil {
		return nil, err
	}
	program, err := store.CompileMicroseconds(spec)
	if err != nil {
		return nil, err
	}
	b := &binding{store: s, names: names, limit: Limit{Program: program, Accounts: spec.Accounts()}}
	if b.limit.Accounts {
		b.limit.Head = program.Head()
	}
	if s.compiler != nil {
		if b.limit.Compiled, err = s.compiler.Compile(spec, program); err != nil {
			return nil, err
		}
	}
	var bound store.Binding = b
	if s.decider != nil && s.options.Direct {
		bound = &batcher{b}
	}
	if s.options.Breaker != nil {
		bound = s.options.Breaker.Bind(bound, func(key string) *store.Circuit { return s.options.Circuit(names.Name(key)) })
	}
	return bound, nil
}

// TrustsClientTime implements [store.Timekeeper].
func (s *Store) TrustsClientTime() bool { return s.options.TrustClientTime }

// Counts implements [store.Counter].
func (s *Store) Counts() store.Counts {
	c := store.Counts{Healed: s.healed.Load(), Conflicts: s.conflicts.Load(), Failures: s.failures.Load()}
	if s.options.Breaker != nil {
		s.options.Breaker.Count(&c)
	}
	return c
}

// Close ends the Breaker, lets no more operations queue, and returns when those in the queue have
// ended, which is within the timeout if the engine minds its contexts. It does not close the engine.
func (s *Store) Close() error {
	if s.options.Breaker != nil {
		s.options.Breaker.Close()
	}
	s.queue.close()
	return nil
}

// do carries out a request, and counts its failure.
func (s *Store) do(ctx context.Context, r *Request) error {
	err := s.decideOrQueue(ctx, r)
	if err != nil && (ctx.Err() == nil || store.TimedOut(ctx)) && !errors.Is(err, ErrClosed) && !errors.Is(err, errBusy) {
		s.failures.Add(1) // of the engine, not of the caller
	}
	return err
}

func (s *Store) decideOrQueue(ctx context.Context, r *Request) error {
	if s.options.Direct && s.decidable(r) {
		if done, err := s.decider.Decide(ctx, r); done || err != nil {
			s.forget(r)
			return unknown(err)
		}
	}
	return s.await(ctx, r)
}

// decidable reports whether the Decider may be able to carry out a request.
func (s *Store) decidable(r *Request) bool {
	if s.decider == nil || r.Mode == view {
		return false
	}
	for i := range r.Steps {
		if p := &r.Steps[i]; p.settles() || p.Op.Kind != algorithm.Reset && s.recent.has(p.Name) {
			return false
		}
	}
	return true
}

// forget removes the names from recent whose records a Decider has reset.
func (s *Store) forget(r *Request) {
	for i := range r.Steps {
		if p := &r.Steps[i]; p.Op.Kind == algorithm.Reset {
			s.recent.remove(p.Name)
		}
	}
}
