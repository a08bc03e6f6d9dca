package swap

import (
	"sync/atomic"

	"github.com/weirlimit/weir/store"
)

// A Store is a [store.Store] on an engine.
//
// An operation whose context ends, or whose time runs out, while it queues has done nothing: the error is an
// [ErrNothingDone]. When it is on its way to the engine the caller has its error at once too, but whether the operation takes effect is
// unknown: it goes on, together with those of others.
type Store struct {
	engine  Engine
	decider Decider // the engine, if it is one
	options Options
	queue   queue

	healed, conflicts, failures atomic.Int64
}

// New returns a store on the engine.
func New(engine Engine, o Options) *Store {
	s := &Store{engine: engine, options: o.withDefaults()}
	s.decider, _ = engine.(Decider)
	s.queue.lines = map[string]*line{}
	return s
}

// Bind implements [store.Store]. Every limit that makes sense in microseconds is kept exactly.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	names, err := store.NewNames(s.options.Prefix, spec)
	if err != nil {
		return nil, err
	}
	program, err := store.CompileMicroseconds(spec)
	if err != nil {
		return nil, err
	}
	return &binding{store: s, names: names, program: program, accounts: spec.Accounts()}, nil
}

// TrustsClientTime implements [store.Timekeeper].
func (s *Store) TrustsClientTime() bool { return s.options.TrustClientTime }

// Counts implements [store.Counter].
func (s *Store) Counts() store.Counts {
	return store.Counts{Healed: s.healed.Load(), Conflicts: s.conflicts.Load(), Failures: s.failures.Load()}
}

// Close lets no more operations in, and returns when those that are in have ended, which is within the timeout if the engine minds its
// contexts. It does not close the engine.
func (s *Store) Close() error {
	s.queue.close()
	return nil
}
