package swap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// A flight carries calls for one name to the engine. There is one at a time for each name.
type flight struct {
	store *Store
	name  string
	calls []*call
}

// serve carries the calls of a line, those that are there at a time together, until there are none.
func (s *Store) serve(name string) {
	for calls := s.queue.next(name); calls != nil; calls = s.queue.next(name) {
		f := &flight{store: s, name: name, calls: calls}
		f.run()
	}
}

// run answers all calls. A panic is an error of all of them, which await raises again. It has a
// context of its own, because a caller's context ends with the caller, while further calls go on. It ends with the time
// of the call that has most.
func (f *flight) run() {
	f.dropGivenUp()
	if len(f.calls) == 0 {
		return
	}
	end := f.calls[0].end
	for _, c := range f.calls {
		if c.end.After(end) {
			end = c.end
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	err := panics.Catch(func() error {
		done, err := f.decide(ctx)
		if !done && err == nil {
			err = f.swap(ctx)
		}
		return err
	})
	for _, c := range f.calls {
		if err == nil {
			c.answer(c.refused)
		} else {
			c.answer(err)
		}
	}
}

// dropGivenUp takes the calls out that nobody waits for. It is for when they have changed nothing.
func (f *flight) dropGivenUp() {
	f.calls = slices.DeleteFunc(f.calls, func(c *call) bool {
		if c.ended() == nil {
			return false
		}
		c.answer(errGivenUp)
		return true
	})
}

// decide lets the engine carry out a single call in one step, if it can.
func (f *flight) decide(ctx context.Context) (done bool, err error) {
	c := f.calls[0]
	if f.store.decider == nil || len(f.calls) > 1 || c.look || c.op.Kind == algorithm.Reserve || c.op.Kind == algorithm.Commit {
		return false, nil
	}
	head := ""
	if c.accounts {
		head = c.program.Head()
	}
	c.verdict, c.at, done, err = f.store.decider.Decide(ctx, f.name, head, c.program, c.op, c.now)
	return done, unknown(err)
}

// swap loads the state, applies the calls, and swaps the new state in, again and again until nobody came between.
func (f *flight) swap(ctx context.Context) error {
	for lost := 0; len(f.calls) > 0; lost++ {
		began := time.Now()
		swapped, err := f.try(ctx)
		if err != nil || swapped {
			return err
		}
		f.store.conflicts.Add(1)
		if err := pause(ctx, lost, time.Since(began)); err != nil {
			return fmt.Errorf("weir: lost %d swaps: %w; %w", lost+1, err, ErrNothingDone)
		}
		f.dropGivenUp()
	}
	return nil
}

// try loads, applies and swaps once. The answers of the calls count only if it succeeds.
func (f *flight) try(ctx context.Context) (swapped bool, err error) {
	cell, err := f.store.engine.Load(ctx, f.name)
	if err != nil {
		return false, fmt.Errorf("%w; %w", err, ErrNothingDone)
	}
	if f.dropGivenUp(); len(f.calls) == 0 {
		return true, nil
	}
	account, earliest, writes, healed := f.apply(cell)
	if !writes {
		return true, nil
	}
	next, ours := f.record(account), cell.Foreign == nil
	if ours && next.equal(cell.Record) {
		return true, nil
	}
	life := f.life(account, earliest)
	if life <= 0 {
		next = Record{}
	}
	if ours && next.Empty() && cell.Empty() { // what was taken was given back in the same flight
		return true, nil
	}
	swapped, err = f.store.engine.Swap(ctx, f.name, cell, next, life)
	if err != nil {
		return false, unknown(err)
	}
	if swapped && healed {
		f.store.healed.Add(1)
	}
	return swapped, nil
}

// apply carries out the calls in their order, and returns the account that is left, the earliest time of a call, whether a call may have
// changed it, and whether it was healed. What is kept but is no account refuses all calls up to a reset.
func (f *flight) apply(cell Cell) (a algorithm.Account, earliest int64, writes, healed bool) {
	a, foreign := f.account(cell)
	healed = foreign == nil && f.store.heals() && a.Heal(cell.Now)
	for i, c := range f.calls {
		if c.at = c.now; c.now == store.OwnClock {
			c.at = cell.Now
		}
		if i == 0 || c.at < earliest {
			earliest = c.at
		}
		if c.refused = nil; foreign != nil && c.op.Kind != algorithm.Reset {
			c.refused = fmt.Errorf("%w; %w", foreign, ErrNothingDone)
			continue
		}
		foreign = nil
		writes = writes || !c.peeks() // those that only look see it healed, and leave it
		a = c.apply(a)
	}
	return a, earliest, writes, healed
}

// account returns what a cell keeps: an account; or, of bindings that keep none, a state that is the same under the limits of all calls.
func (f *flight) account(cell Cell) (algorithm.Account, error) {
	p, state := f.calls[0].program, slices.Clone(cell.State)
	switch {
	case cell.Foreign != nil:
		return algorithm.Account{}, cell.Foreign
	case f.calls[0].accounts:
		return algorithm.ReadHead(p, cell.Head, state)
	case cell.Head != "":
		return algorithm.Account{}, fmt.Errorf("weir: there is a head, %.100q, beside the state of a limiter that has no name; accepted: none", cell.Head)
	}
	return algorithm.Account{Program: p, State: state}, p.Check(state)
}

// record returns what is kept of an account.
func (f *flight) record(a algorithm.Account) Record {
	r := Record{State: a.State}
	if f.calls[0].accounts {
		r.Head = a.Head()
	}
	return r
}

// life returns how long the engine must keep an account from now on. One that is fresh again is kept for the grace too: its time is
// worth something to who comes with an earlier one.
func (f *flight) life(a algorithm.Account, now int64) time.Duration {
	return time.Duration(a.Life(now))*f.calls[0].program.Tick() + f.store.options.Grace
}

// peeks reports whether the call can't change anything.
func (c *call) peeks() bool { return c.look || c.op.Kind <= algorithm.TakeUpTo && c.op.Cost == 0 }

// apply carries out the call at its time, and returns what is left of the account, which it may change in place.
func (c *call) apply(a algorithm.Account) algorithm.Account {
	var r algorithm.Result
	switch {
	case c.look:
		c.state = c.view(a)
	case c.accounts:
		a, r = a.Apply(c.program, c.op, c.at)
	default:
		a.State, r = c.program.Apply(a.State, c.op, c.at)
	}
	c.verdict = r.Verdict()
	return a
}

// view returns a copy of the state that the call's limit finds.
func (c *call) view(a algorithm.Account) []int64 {
	if c.accounts {
		return a.View(c.program, c.at)
	}
	return slices.Clone(a.State)
}

// heals reports whether states that are too far ahead are healed.
func (s *Store) heals() bool { return s.options.SharedClock && !s.options.TrustClientTime }

const (
	shortestAttempt = 100 * time.Microsecond
	// mostDoublings is small: with longer pauses those that have lost lose to those that have just come, and a few
	// wait for very long.
	mostDoublings = 2
)

// pause waits before the next attempt: for a random part of the time that the last one took, of twice that time after two
// lost swaps, and of four times after more. For each that was lost somebody else's succeeded, so it is enough to thin them out.
func pause(ctx context.Context, lost int, attempt time.Duration) error {
	most := max(attempt, shortestAttempt) << min(lost, mostDoublings)
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
