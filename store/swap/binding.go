package swap

import (
	"context"
	"errors"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// binding is a limit on a store.
type binding struct {
	store   *Store
	names   store.Names
	program *algorithm.Program

	accounts bool
}

// Do implements [store.Binding].
func (b *binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.DoStamped(ctx, key, op, now)
	return v, err
}

// DoStamped implements [store.Stamper].
func (b *binding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, int64, error) {
	if (op.Kind == algorithm.Reserve || op.Kind == algorithm.Commit) && !b.accounts {
		return algorithm.Verdict{}, 0, store.ErrUnnamed
	}
	op.End, op.Life = store.Microseconds(op.End), roundUp(op.Life)
	c := &call{program: b.program, accounts: b.accounts, op: op}
	if err := b.do(ctx, key, c, now); err != nil {
		return algorithm.Verdict{}, 0, err
	}
	return c.verdict, c.at * int64(b.program.Tick()), nil
}

// roundUp returns nanoseconds in microseconds.
func roundUp(ns int64) int64 { return -store.Microseconds(-ns) }

// Inspect implements [store.Inspector]. Of an account it is the state that the binding's limit finds in it.
func (b *binding) Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error) {
	c := &call{program: b.program, accounts: b.accounts, look: true}
	if err := b.do(ctx, key, c, now); err != nil {
		return nil, 0, err
	}
	return c.state, c.at, nil
}

// Program implements [store.Inspector].
func (b *binding) Program() *algorithm.Program { return b.program }

// do carries out a call at now, which is in nanoseconds.
func (b *binding) do(ctx context.Context, key string, c *call, now int64) error {
	c.now = now
	if now != store.OwnClock {
		if !b.store.options.TrustClientTime {
			return store.ErrClientTime
		}
		c.now = store.Microseconds(now)
	}
	err := b.store.await(ctx, b.names.Name(key), c)
	if err != nil && (ctx.Err() == nil || store.TimedOut(ctx)) && !errors.Is(err, ErrClosed) {
		b.store.failures.Add(1) // the engine's, not the caller's
	}
	return err
}

// await sends a call on its way, and waits for the answer for as long as the caller does and the timeout allows.
func (s *Store) await(caller context.Context, name string, c *call) error {
	if caller.Err() != nil {
		return givenUp(caller, s.options.Timeout, ErrNothingDone)
	}
	ctx, cancel := context.WithTimeout(caller, s.options.Timeout)
	defer cancel()
	c.ended, c.done = ctx.Err, make(chan struct{})
	c.end, _ = ctx.Deadline()
	idle, err := s.queue.join(name, c)
	if err != nil {
		return err
	}
	if idle {
		go s.serve(name) //nolint:contextcheck // it also serves further callers
	}
	select {
	case <-c.done:
		panics.Raise(c.err)
		if !errors.Is(c.err, errGivenUp) {
			return c.err
		}
		return givenUp(caller, s.options.Timeout, ErrNothingDone)
	case <-ctx.Done():
	}
	if s.queue.leave(name, c) {
		return givenUp(caller, s.options.Timeout, ErrNothingDone)
	}
	return givenUp(caller, s.options.Timeout, errUnknown)
}
