package swap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
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

// run answers all calls. It has a context of its own: those of the callers end with them, and the calls of others must go on.
func (f *flight) run() {
	ctx, cancel := context.WithTimeout(context.Background(), f.store.options.Timeout)
	defer cancel()
	f.dropGivenUp()
	if len(f.calls) == 0 {
		return
	}
	done, err := f.decide(ctx)
	if !done && err == nil {
		err = f.swap(ctx)
	}
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
	if f.store.decider == nil || len(f.calls) > 1 || c.look {
		return false, nil
	}
	c.verdict, c.at, done, err = f.store.decider.Decide(ctx, f.name, c.program, c.op, c.now)
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
	state, earliest, changed, healed := f.apply(cell)
	if !changed {
		return true, nil
	}
	life := f.life(state, earliest)
	if life <= 0 {
		if len(cell.State) == 0 && cell.Foreign == nil {
			return true, nil // nothing for nothing: what was taken was given back in the same flight
		}
		state = nil
	}
	swapped, err = f.store.engine.Swap(ctx, f.name, cell, state, life)
	if err != nil {
		return false, unknown(err)
	}
	if swapped && healed {
		f.store.healed.Add(1)
	}
	return swapped, nil
}

// apply carries out the calls in their order, and returns the new state, the earliest time of a call, whether the state is to be
// swapped in, and whether it was healed. What is kept but is no state refuses all calls up to a reset.
func (f *flight) apply(cell Cell) (state []int64, earliest int64, changed, healed bool) {
	program := f.calls[0].program
	foreign := cell.Foreign
	if state = slices.Clone(cell.State); foreign == nil {
		foreign = program.Check(state)
	}
	healed = foreign == nil && f.store.heals() && program.Heal(state, cell.Now)
	writes := false
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
		if foreign != nil {
			state, foreign, writes, changed = nil, nil, true, true
		}
		writes = writes || !c.look && (c.op.Cost > 0 || c.op.Kind == algorithm.Reset)
		var r algorithm.Result
		state, r = c.program.Apply(state, c.op, c.at)
		c.verdict = r.Verdict()
		if c.look {
			c.state = slices.Clone(state)
		}
	}
	changed = changed || writes && !slices.Equal(state, cell.State) // those that only look see it healed, and leave it
	return state, earliest, changed, healed
}

// life returns how long the engine must keep a state from now on. A state that is fresh again is kept for the grace too: its time is
// worth something to who comes with an earlier one.
func (f *flight) life(state []int64, now int64) time.Duration {
	_, peek := f.calls[0].program.Apply(state, algorithm.Op{}, now) // it changes nothing
	return peek.ResetAfter + f.store.options.Grace
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
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
