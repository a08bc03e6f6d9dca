package swap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A round carries out calls with one swap.
type round struct {
	store   *Store
	calls   []*call // without those that have an error
	keys    []Key   // sorted by name
	one     [1]Key  // memory for the keys of most rounds
	entries []entry // of the keys
}

// An entry is a record that a round works on.
type entry struct {
	limit    *Limit // of the first step on it
	cell     Cell
	account  algorithm.Account
	foreign  error // the reason why the cell has no account
	healed   bool
	written  bool
	earliest int64 // time of the steps that wrote it
}

func newRound(s *Store, calls []*call) *round {
	r := &round{store: s, calls: slices.Clone(calls)}
	r.keys = r.one[:0]
	for _, c := range calls {
		for i := range c.Steps {
			r.keys = append(r.keys, c.Steps[i].Key)
		}
	}
	if len(r.keys) > 1 {
		slices.SortStableFunc(r.keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
		r.keys = slices.CompactFunc(r.keys, func(a, b Key) bool { return a.Name == b.Name })
	}
	return r
}

// find returns the place of a name among the keys.
func (r *round) find(name string) int {
	if len(r.keys) == 1 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(r.keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	return i
}

// run carries out the calls. Its error is that of the calls that have none.
func (r *round) run(ctx context.Context) error {
	if r.dropCanceled(); len(r.calls) == 0 {
		return nil
	}
	if c := r.calls[0]; len(r.calls) == 1 && !r.store.options.Direct && r.store.decidable(c.Request) {
		if done, err := r.store.decider.Decide(ctx, c.Request); done || err != nil {
			r.store.forget(c.Request)
			return unknown(err)
		}
	}
	if r.store.decider != nil && !r.views() {
		for _, k := range r.keys {
			r.store.recent.add(k.Name)
		}
		defer r.remember()
	}
	return r.swap(ctx)
}

// views reports whether all calls are views.
func (r *round) views() bool {
	return !slices.ContainsFunc(r.calls, func(c *call) bool { return c.Mode != view })
}

// remember keeps the names in recent whose records are not for the Decider.
func (r *round) remember() {
	for i, k := range r.keys {
		if r.entries == nil || r.entries[i].limit == nil || r.entries[i].plain() {
			r.store.recent.remove(k.Name)
		}
	}
}

// dropCanceled removes the calls whose callers have given up. They must not have changed anything.
func (r *round) dropCanceled() {
	r.drop(errGivenUp, func(c *call) bool { return c.canceled() != nil })
}

// drop removes calls with an error.
func (r *round) drop(err error, which func(*call) bool) {
	r.calls = slices.DeleteFunc(r.calls, func(c *call) bool {
		if which(c) {
			c.err = err
			return true
		}
		return false
	})
}

// swap loads, applies and swaps, again and again until no other process changed a record in between.
func (r *round) swap(ctx context.Context) error {
	for lost := 0; len(r.calls) > 0; lost++ {
		began := time.Now()
		swapped, err := r.try(ctx)
		if err != nil || swapped {
			return err
		}
		r.store.conflicts.Add(1)
		if err := pause(ctx, lost, time.Since(began)); err != nil {
			return fmt.Errorf("%s: lost %d swaps: %w; %w", r.store.options.Engine, lost+1, err, ErrNothingDone)
		}
		r.dropCanceled()
		if most := r.store.options.TurnAfter; most > 0 && lost+1 >= most {
			r.drop(errBusy, func(c *call) bool { return len(c.names) > 1 })
		}
	}
	return nil
}

// try loads, applies and swaps once. The results of the calls count only if it succeeds.
func (r *round) try(ctx context.Context) (swapped bool, err error) {
	cells, err := r.load(ctx)
	if err != nil {
		return false, nothingDone(err)
	}
	if r.dropCanceled(); len(r.calls) == 0 {
		return true, nil
	}
	r.entries = make([]entry, len(r.keys))
	for _, c := range r.calls {
		for i := range c.Steps {
			if n := r.find(c.Steps[i].Name); r.entries[n].limit == nil {
				r.entries[n] = r.store.open(cells[n], c.Steps[i].Key)
			}
		}
		c.At = cells[0].Now
		c.err = r.apply(c.Request)
	}
	changes, healed := r.changes()
	if len(changes) == 0 {
		return true, nil
	}
	if swapped, err = r.store.engine.Swap(ctx, changes); swapped {
		r.store.healed.Add(healed)
	}
	return swapped, unknown(err)
}

// load returns the cells of the keys. A Decider may have loaded those of a call that is alone.
func (r *round) load(ctx context.Context) ([]Cell, error) {
	if c := r.calls[0]; len(r.calls) == 1 && len(c.Found) == len(c.Steps) {
		cells := make([]Cell, len(r.keys))
		for i, cell := range c.Found {
			cells[r.find(c.Steps[i].Name)] = cell
		}
		c.Found = nil
		return cells, nil
	}
	cells, err := r.store.engine.Load(ctx, r.keys)
	if err == nil && len(cells) != len(r.keys) {
		err = fmt.Errorf("%s: %d keys loaded as %d cells", r.store.options.Engine, len(r.keys), len(cells))
	}
	return cells, err
}

// open reads the cell of a key.
func (s *Store) open(cell Cell, k Key) entry {
	e, l := entry{limit: k.Limit, cell: cell}, k.Limit
	err, state := cell.Foreign, slices.Clone(cell.State)
	switch {
	case err != nil:
	case l.Accounts:
		e.account, err = algorithm.ReadHead(l.Program, cell.Head, state)
	case cell.Head != "":
		err = fmt.Errorf("the head is %.100q; accepted: none beside the state of a limiter without a name", cell.Head)
	default:
		e.account, err = algorithm.Account{Program: l.Program, State: state}, l.Program.Check(state)
	}
	if err != nil {
		e.account, e.foreign = algorithm.Account{}, s.foreign(k.Name, err)
		return e
	}
	e.healed = s.options.SharedClock && !s.options.TrustClientTime && e.account.Heal(cell.Now)
	return e
}

// plain reports whether the account is nothing but a state of the limit.
func (e *entry) plain() bool {
	return e.foreign != nil || !e.limit.Accounts || len(e.account.State) == 0 && e.account.Extra == nil || e.account.Plain(e.limit.Program)
}

// apply carries out a step on the entry, in place.
func (e *entry) apply(s *Step, op algorithm.Op, at int64) (r algorithm.Result) {
	quiet := s.peeks() || s.hopeless() && e.account.Plain(s.Limit.Program)
	if s.Limit.Accounts {
		e.account, r = e.account.Apply(s.Limit.Program, op, at)
	} else { // of shared debts the limit may be another
		e.account.Program = e.limit.Program
		e.account.State, r = s.Limit.Program.Apply(e.account.State, op, at)
	}
	if !quiet {
		if !e.written || at < e.earliest {
			e.earliest = at
		}
		e.written = true
	}
	return r
}

// copied returns a copy that can be changed without the entry.
func (e *entry) copied() entry {
	c := *e
	c.account.State = slices.Clone(e.account.State)
	return c
}

// apply carries out a request. A value that is no record refuses the request, except a Reset.
func (r *round) apply(q *Request) error {
	for i := range q.Steps {
		s := &q.Steps[i]
		if e := &r.entries[r.find(s.Name)]; e.foreign != nil && s.Op.Kind != algorithm.Reset {
			return e.foreign
		}
	}
	switch q.Mode {
	case view:
		s := &q.Steps[0]
		s.state = r.entries[r.find(s.Name)].view(s, s.Time(q.At))
	case Each:
		for i := range q.Steps {
			s := &q.Steps[i]
			e := &r.entries[r.find(s.Name)]
			e.foreign = nil
			s.Verdict = e.apply(s, s.Op, s.Time(q.At)).Verdict()
		}
	default:
		r.applyJointly(q)
	}
	return nil
}

// view returns a copy of the state that the step's limit finds.
func (e *entry) view(s *Step, at int64) []int64 {
	if s.Limit.Accounts {
		return e.account.View(s.Limit.Program, at)
	}
	return slices.Clone(e.account.State)
}

// applyJointly charges all steps, if the mode is All and none denies. Otherwise the steps that deny are
// carried out, because some limits count denials, and the others are peeks.
func (r *round) applyJointly(q *Request) {
	after, charge := make([]entry, len(q.Steps)), q.Mode == All
	for i := range q.Steps {
		s := &q.Steps[i]
		after[i] = r.entries[r.find(s.Name)].copied()
		s.Verdict = after[i].apply(s, s.Op, s.Time(q.At)).Verdict()
		charge = charge && s.Verdict.Granted >= 0
	}
	for i := range q.Steps {
		s := &q.Steps[i]
		e := &r.entries[r.find(s.Name)]
		if charge || s.Verdict.Granted < 0 {
			*e = after[i]
			continue
		}
		peek := *s
		peek.Op = algorithm.Op{}
		copied := e.copied()
		s.Verdict = copied.apply(&peek, peek.Op, s.Time(q.At)).Verdict()
	}
}

// changes returns the records to swap, and the number of those that were healed.
func (r *round) changes() (changes []Change, healed int64) {
	for i := range r.entries {
		e := &r.entries[i]
		if e.limit == nil || !e.written {
			continue
		}
		next := Record{State: e.account.State}
		if e.limit.Accounts {
			next.Head = e.account.Head()
		}
		ours := e.cell.Foreign == nil
		if ours && next.equal(e.cell.Record) {
			continue
		}
		life := time.Duration(max(0, e.account.Life(e.earliest)))*e.limit.Program.Tick() + r.store.options.Grace
		if life <= 0 {
			next = Record{}
		}
		if ours && next.Empty() && e.cell.Empty() { // a take was given back in the same round
			continue
		}
		changes = append(changes, Change{Key: r.keys[i], Old: e.cell, Next: next, Life: life})
		if e.healed {
			healed++
		}
	}
	return changes, healed
}
