package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// TakeAll implements [store.Joiner]. If all names are of one slot of the engine, or it has no slots,
// it is one request. Over several slots all are first looked at; then they are taken one after
// another, and given back if one denies all the same. If each name is alone, and after too many lost
// swaps (Options.TurnAfter), it is [store.TakeInTurn].
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	steps, ours, err := s.steps(parts, now)
	if err != nil || len(parts) == 0 {
		return outcomes, err
	}
	slots := s.slots(steps)
	if !ours || s.alone(steps) {
		return store.TakeInTurn(ctx, parts, now, outcomes)
	}
	end := time.Now().Add(s.options.Timeout)
	limit := s.options.Timeout
	if len(slots) > 1 { // the rest is for giving back
		limit -= limit / 4
	}
	ctx, cancel := s.within(ctx, limit)
	defer cancel()
	first := len(outcomes)
	outcomes = append(outcomes, make([]store.Outcome, len(parts))...)
	j := &joint{store: s, steps: steps, outcomes: outcomes[first:], end: end}
	switch err = j.take(ctx, slots); {
	case errors.Is(err, errBusy):
		return store.TakeInTurn(ctx, parts, now, outcomes[:first])
	case err != nil:
		return outcomes[:first], err
	}
	return outcomes, nil
}

// steps returns the steps of a joint take. ours is false if a binding is of another store.
func (s *Store) steps(parts []store.Part, now int64) (steps []Step, ours bool, err error) {
	steps = make([]Step, len(parts))
	for i, p := range parts {
		b, ok := store.Unwrap(p.Binding).(interface{ own() *binding })
		if !ok || b.own().store != s {
			return nil, false, nil
		}
		op := algorithm.Op{Kind: algorithm.Take, Cost: p.Cost}
		if p.ID != 0 {
			op = algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: p.Life}
		}
		if steps[i], err = b.own().step(p.Key, op, now); err != nil {
			return nil, true, err
		}
	}
	return steps, true, nil
}

func (b *binding) own() *binding { return b }

// alone reports whether the engine can't swap the record of a step together with others.
func (s *Store) alone(steps []Step) bool {
	return s.slotter != nil && len(steps) > 1 && s.slotter.Slot(steps[0].Name) < 0
}

// within bounds a context. The end of that time counts as a timeout of the breaker.
func (s *Store) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if s.options.Breaker == nil {
		return context.WithTimeout(ctx, limit)
	}
	return s.options.Breaker.Within(ctx, limit)
}

// slots returns the places of the steps of each slot, in the order of the slots, which is the same
// for all callers.
func (s *Store) slots(steps []Step) [][]int {
	places := make([]int, len(steps))
	for i := range places {
		places[i] = i
	}
	if s.slotter == nil {
		return [][]int{places}
	}
	slot := make([]int, len(steps))
	for i := range steps {
		slot[i] = s.slotter.Slot(steps[i].Name)
	}
	slices.SortStableFunc(places, func(i, j int) int { return slot[i] - slot[j] })
	var slots [][]int
	for len(places) > 0 {
		n := 1
		for n < len(places) && slot[places[n]] == slot[places[0]] {
			n++
		}
		slots, places = append(slots, places[:n:n]), places[n:]
	}
	return slots
}

// pick returns the steps at some places.
func pick(steps []Step, places []int) []Step {
	picked := make([]Step, len(places))
	for i, place := range places {
		picked[i] = steps[place]
	}
	return picked
}

// A joint is a joint take.
type joint struct {
	store    *Store
	steps    []Step
	outcomes []store.Outcome
	charges  []charge
	end      time.Time // of the time of the joint take, giving back included
}

// A charge is a slot that was charged.
type charge struct {
	slot []int
	at   int64     // engine's time, in microseconds
	sent time.Time // by the clock of this process, when it was sent or before
}

// take takes from the slots one after another. If there are several it looks at all of them before,
// so that a denied request leaves no trace, such as a window that it began, unless another request
// came in between.
func (j *joint) take(ctx context.Context, slots [][]int) error {
	if len(slots) > 1 {
		if denied, err := j.look(ctx, slots); denied || err != nil {
			return err
		}
	}
	for i, slot := range slots {
		sent := time.Now()
		at, denied, err := j.ask(ctx, "take all", All, j.steps, slot)
		switch {
		case err != nil:
			return j.undo(ctx, err)
		case !denied:
			j.charges = append(j.charges, charge{slot, at, sent})
			continue
		}
		if err := j.undo(ctx, nil); err != nil {
			return err
		}
		if _, err := j.look(ctx, slots[i+1:]); err != nil {
			return halfway(i, nil, err)
		}
		return nil
	}
	return nil
}

// look reports whether one of the slots would deny.
func (j *joint) look(ctx context.Context, slots [][]int) (denied bool, err error) {
	for _, slot := range slots {
		_, d, err := j.ask(ctx, "take all", Look, j.steps, slot)
		if err != nil && denied {
			return false, &partialError{"take all: another key had denied before, which limits count that are strict", err}
		}
		if err != nil {
			return false, err
		}
		denied = denied || d
	}
	return denied, nil
}

// ask carries out a request on the steps of a slot, as a call through its circuit, and reports whether
// a step is denied.
func (j *joint) ask(ctx context.Context, verb string, mode Mode, steps []Step, slot []int) (at int64, denied bool, err error) {
	r := &Request{Verb: verb, Mode: mode, Steps: pick(steps, slot)}
	if len(slot) == 1 && mode == All {
		r.Mode = Each // the same, and the fast path of more engines
	}
	if busy, err := j.store.through(ctx, r); busy || err != nil {
		return 0, false, cmp.Or(err, errBusy)
	}
	for i, place := range slot {
		s := &r.Steps[i]
		j.outcomes[place] = store.Outcome{Verdict: s.Verdict, At: s.Time(r.At) * int64(s.Limit.Program.Tick())}
		denied = denied || s.Verdict.Granted < 0
	}
	return r.Steps[0].Time(r.At), denied, nil
}

// through carries out a request as a call through the circuit of its slot. busy is no error of the
// engine.
func (s *Store) through(ctx context.Context, r *Request) (busy bool, err error) {
	do := func(ctx context.Context) (bool, error) {
		err := s.do(ctx, r)
		if errors.Is(err, errBusy) {
			return true, nil
		}
		return false, err
	}
	if s.options.Breaker == nil {
		return do(ctx)
	}
	return store.Through(ctx, s.options.Circuit(r.Steps[0].Name), do)
}

// undo gives back the charges after a slot denied, or failed with an error, which it returns with its
// own.
func (j *joint) undo(ctx context.Context, err error) error {
	charged := len(j.charges)
	kept, e := j.giveBack(ctx)
	return halfway(charged, kept, errors.Join(err, e))
}

// halfway returns the error of a joint take of which some slots were charged. kept are the names that
// may stay charged.
func halfway(charged int, kept []string, err error) error {
	if charged == 0 || err == nil {
		return err
	}
	done := "the keys that had been charged before were given it back, as far as that can be done"
	if len(kept) > 0 {
		done = fmt.Sprintf("these keys had been charged, and may stay so: %.1000q", kept)
	}
	return &partialError{"take all: " + done, err}
}

// giveBack undoes the charges, as far as the limits still hold them, also if ctx has ended. It returns
// the names for which that failed.
func (j *joint) giveBack(ctx context.Context) (kept []string, failed error) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), j.end)
	defer cancel()
	for _, c := range j.charges {
		steps := slices.Clone(j.steps)
		for _, place := range c.slot {
			steps[place].Op = j.back(place, c)
		}
		if _, _, err := j.ask(ctx, "give back", Each, steps, c.slot); err != nil {
			failed = errors.Join(failed, err)
			for _, place := range c.slot {
				kept = append(kept, steps[place].Name)
			}
			continue
		}
		for _, place := range c.slot {
			j.outcomes[place].Granted = 0
		}
	}
	j.charges = nil
	return kept, failed
}

// back returns the operation that undoes a charge.
func (j *joint) back(place int, c charge) algorithm.Op {
	s, o := &j.steps[place], &j.outcomes[place]
	if s.Op.Kind == algorithm.Reserve {
		return algorithm.Op{Kind: algorithm.Commit, ID: s.Op.ID}
	}
	elapsed := time.Duration(0)
	if s.Now == store.OwnClock {
		elapsed = max(1, time.Since(c.sent))
	}
	limit := s.Limit.Program.Limit()
	op := algorithm.Op{
		Kind: algorithm.Cancel, End: c.at + int64(o.Reset/s.Limit.Program.Tick()),
		Cost: limit.Outstanding(o.Granted, o.Decision(limit.Capacity()), elapsed),
	}
	if elapsed == 0 {
		op.Kind = algorithm.Refund // nothing has come back in no time
	}
	return op
}
