package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A binding is one of the loop's, which does all but what is asked together with others.
type binding struct {
	bound
	names    store.Names
	accounts bool
}

type bound interface {
	store.Binding
	store.Stamper
	store.Inspector
}

// Bind implements [store.Store]. Every limit that makes sense in microseconds is kept exactly.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.loop.Bind(spec)
	if err != nil {
		return nil, err
	}
	names, err := store.NewNames(s.options.Prefix, spec)
	if err != nil {
		return nil, err
	}
	own := &binding{b.(bound), names, spec.Accounts()} //nolint:forcetypeassert // the loop's are
	return s.breaker.Bind(own, func(string) *store.Circuit { return s.circuit }), nil
}

// A joint is a request of several parts that are charged together or not at all.
type joint struct {
	parts []part
	now   int64        // µs, or store.OwnClock
	ended func() error // is not nil when nobody waits for the answer any more
	end   time.Time    // of the time that the joint has
	done  chan struct{}

	waits    bool // for others, and is in no flight yet
	verdicts []algorithm.Verdict
	at       int64 // µs
	err      error
}

// A part is one operation of a joint.
type part struct {
	name     string
	program  *algorithm.Program
	accounts bool
	op       algorithm.Op // in ticks
}

// errBusy marks joints that lost too many swaps.
var errBusy = errors.New("busy")

// errForeign marks requests with a part of another store.
var errForeign = errors.New("a part is of another store")

// TakeAll implements [store.Joiner]. It loads all states together, takes the steps in the process, and swaps all that changed, by one
// statement and if nobody came between. Where others come between again and again it takes the parts one after another, as [store.TakeInTurn] does;
// see docs/postgres.md.
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	if len(parts) < 2 {
		return store.TakeInTurn(ctx, parts, now, outcomes)
	}
	ctx, cancel := s.breaker.Within(ctx, s.options.Timeout) // of all that follows
	defer cancel()
	j, err := s.joint(parts, now)
	if err == nil {
		j, err = store.Through(ctx, s.circuit, func(ctx context.Context) (*joint, error) {
			err := s.joints.await(ctx, j)
			if err != nil && (ctx.Err() == nil || store.TimedOut(ctx)) && !errors.Is(err, errBusy) && !errors.Is(err, swap.ErrClosed) {
				s.engine.failures.Add(1) // the server's, not the caller's
			}
			return j, err
		})
	}
	switch {
	case errors.Is(err, errBusy) || errors.Is(err, errForeign):
		return store.TakeInTurn(ctx, parts, now, outcomes)
	case err != nil:
		return outcomes, err
	}
	for _, v := range j.verdicts {
		outcomes = append(outcomes, store.Outcome{Verdict: v, At: j.at * 1000})
	}
	return outcomes, nil
}

func (s *Store) joint(parts []store.Part, now int64) (*joint, error) {
	j := &joint{now: now, parts: make([]part, len(parts)), done: make(chan struct{})}
	if now != store.OwnClock {
		if !s.options.TrustClientTime {
			return nil, store.ErrClientTime
		}
		j.now = store.Microseconds(now)
	}
	for i, p := range parts {
		b, ours := store.Unwrap(p.Binding).(*binding)
		switch {
		case !ours:
			return nil, errForeign
		case p.ID != 0 && !b.accounts:
			return nil, store.ErrUnnamed
		}
		op := algorithm.Op{Kind: algorithm.Take, Cost: p.Cost}
		if p.ID != 0 {
			op = algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: -store.Microseconds(-p.Life)}
		}
		j.parts[i] = part{b.names.Name(p.Key), b.Program(), b.accounts, op}
	}
	return j, nil
}

func (j *joint) answer(err error) {
	j.err = err
	close(j.done)
}

// An entry is a record that a flight of joints works on.
type entry struct {
	cell     swap.Cell
	account  algorithm.Account
	accounts bool
	refused  error // why it is no account
	healed   bool
	written  bool
	earliest int64 // time at which it was written
}

// newEntry reads a record for a part that asks for it.
func newEntry(cell swap.Cell, p part, heals bool) *entry {
	e := &entry{cell: cell, accounts: p.accounts, account: algorithm.Account{Program: p.program, State: slices.Clone(cell.State)}}
	switch {
	case cell.Foreign != nil:
		e.refused = cell.Foreign
	case p.accounts:
		e.account, e.refused = algorithm.ReadHead(p.program, cell.Head, e.account.State)
	case cell.Head != "":
		e.refused = fmt.Errorf("weir: there is a head, %.100q, beside the state of a limiter that has no name; accepted: none", cell.Head)
	default:
		e.refused = e.account.Check()
	}
	if e.refused != nil {
		e.refused = fmt.Errorf("%w; %w", e.refused, swap.ErrNothingDone)
		return e
	}
	e.healed = heals && e.account.Heal(cell.Now)
	return e
}

// would returns what an operation of a part makes of the account, which it leaves alone.
func (e *entry) would(p part, op algorithm.Op, at int64) (a algorithm.Account, r algorithm.Result) {
	a = e.account
	a.State = slices.Clone(a.State)
	if p.accounts {
		return a.Apply(p.program, op, at)
	}
	a.State, r = p.program.Apply(a.State, op, at) // of shared debts the limit may be another
	return a, r
}

// keep makes an account the entry's, at a time.
func (e *entry) keep(a algorithm.Account, at int64) {
	if !e.written || at < e.earliest {
		e.earliest = at
	}
	e.account, e.written = a, true
}

// change returns what is to be swapped, if anything is.
func (e *entry) change(grace time.Duration) (c change, changed bool) {
	next := swap.Record{State: e.account.State}
	if e.accounts {
		next.Head = e.account.Head()
	}
	if !e.written || next.Head == e.cell.Head && slices.Equal(next.State, e.cell.State) {
		return change{}, false
	}
	life := time.Duration(max(0, e.account.Life(e.earliest)))*time.Microsecond + grace
	return change{old: e.cell.Record, next: next, life: life}, true
}

// decide charges all parts if all pass, at the joint's time or else at now. Of those that don't, a part that denies is charged what its
// limit counts of denials.
func (j *joint) decide(entries []*entry, now int64) error {
	if j.at = j.now; j.now == store.OwnClock {
		j.at = now
	}
	after := make([]algorithm.Account, len(j.parts))
	j.verdicts = make([]algorithm.Verdict, len(j.parts))
	passed := true
	for i, p := range j.parts {
		if entries[i].refused != nil {
			return entries[i].refused
		}
		a, r := entries[i].would(p, p.op, j.at)
		after[i], j.verdicts[i] = a, r.Verdict()
		passed = passed && r.Allowed
	}
	for i, p := range j.parts {
		switch {
		case passed && p.op.Kind == algorithm.Take && p.op.Cost == 0: // a peek
		case passed || j.verdicts[i].Granted < 0:
			entries[i].keep(after[i], j.at)
		default:
			_, r := entries[i].would(p, algorithm.Op{}, j.at)
			j.verdicts[i] = r.Verdict()
		}
	}
	return nil
}
