package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// TakeAll implements [store.Joiner]. On a single server, and where all keys are in one slot of a cluster, as all limits of one key
// are, it is one step: one call of the script, or two if a part is a Reserve, or on an account that is more than a state of its limit. The slots of a cluster are otherwise looked at, then taken from in their order, and what
// was taken is given back when one denies all the same: see docs/redis.md.
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	if _, err := s.told(now); err != nil || len(parts) == 0 {
		return outcomes, err
	}
	joint := make([]member, len(parts))
	hopeless := false
	for i, p := range parts {
		b, ok := store.Unwrap(p.Binding).(*binding)
		if !ok { // of a store that wraps this one
			return store.TakeInTurn(ctx, parts, now, outcomes)
		}
		op := algorithm.Op{Cost: p.Cost}
		if p.ID != 0 {
			op = algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: p.Life}
		}
		st, err := b.newStep(p.Key, op, now)
		if err != nil {
			return outcomes, err
		}
		joint[i] = member{step: st, index: i}
		hopeless = hopeless || p.Cost > b.capacity
	}
	groups := [][]member{joint}
	if s.cluster {
		groups = bySlot(joint)
	}
	first := len(outcomes)
	outcomes = append(outcomes, make([]store.Outcome, len(parts))...)
	t := &taking{store: s, outcomes: outcomes[first:], end: time.Now().Add(s.timeout)}
	limit := s.timeout
	if len(groups) > 1 { // the rest is for giving back
		limit -= limit / 4
	}
	ctx, cancel := s.breaker.Within(ctx, limit)
	defer cancel()
	if err := t.take(ctx, groups, hopeless); err != nil {
		return outcomes[:first], err
	}
	return outcomes, nil
}

// A member is one part of a TakeAll, or of a batch.
type member struct {
	step
	index int // among the parts
}

// bySlot returns the members of each slot together, in an order that is the same for all callers.
func bySlot(members []member) [][]member {
	slots := make([]int, len(members))
	order := make([]int, len(members))
	for i, m := range members {
		slots[i], order[i] = slot(m.name), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return slots[i] - slots[j] })
	var groups [][]member
	for n, i := range order {
		if n == 0 || slots[i] != slots[order[n-1]] {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], members[i])
	}
	return groups
}

// A taking is one TakeAll.
type taking struct {
	store    *Store
	outcomes []store.Outcome
	taken    []taken
	end      time.Time // of the time that the request has, what it gives back included
}

// A taken group has been charged, and can be given back.
type taken struct {
	group []member
	at    int64     // by the server's clock, in microseconds
	asked time.Time // by ours, before
}

// take takes from the groups one after another. If there are several it looks at all before, so that a request that is denied leaves no
// trace, such as a window that it began, unless somebody came between.
func (t *taking) take(ctx context.Context, groups [][]member, hopeless bool) error {
	if hopeless || len(groups) > 1 {
		if denied, err := t.look(ctx, groups); denied || err != nil {
			return err
		}
	}
	for i, group := range groups {
		denied, err := t.ask(ctx, group, all)
		if err != nil {
			return t.undo(ctx, err)
		}
		if denied {
			if err := t.undo(ctx, nil); err != nil {
				return err
			}
			if _, err := t.look(ctx, groups[i+1:]); err != nil {
				return halfway(i, nil, err)
			}
			return nil
		}
	}
	return nil
}

// undo gives back what was taken when a group denied, or failed with an error, which it returns with its own.
func (t *taking) undo(ctx context.Context, err error) error {
	groups := len(t.taken)
	kept, e := t.giveBack(ctx)
	return halfway(groups, kept, errors.Join(err, e))
}

// halfway is the error of a request of which some groups were charged, and what of them stays so.
func halfway(groups int, kept []string, err error) error {
	if groups == 0 || err == nil {
		return err
	}
	done := "the keys that had been charged before were given it back, as far as that can be done"
	if len(kept) > 0 {
		done = fmt.Sprintf("these keys had been charged, and may stay so: %.1000q", kept)
	}
	return &partial{"take all: " + done, err}
}

// look asks what stands in the groups, and reports whether any of them would deny.
func (t *taking) look(ctx context.Context, groups [][]member) (denied bool, err error) {
	for _, group := range groups {
		d, err := t.ask(ctx, group, none)
		if err != nil && denied {
			return false, &partial{"take all: another key had denied before, which limits count that are strict", err}
		}
		if err != nil {
			return false, err
		}
		denied = denied || d
	}
	return denied, nil
}

// ask takes from a group, or looks at it, and reports whether it denies.
func (t *taking) ask(ctx context.Context, group []member, mode string) (denied bool, err error) {
	asked := time.Now()
	verdicts, at, err := t.call(ctx, "take all", group, mode)
	if err != nil {
		return false, err
	}
	for i, v := range verdicts {
		t.outcomes[group[i].index] = store.Outcome{Verdict: v, At: at * tick}
		denied = denied || v.Granted < 0
	}
	if !denied && mode == all {
		t.taken = append(t.taken, taken{group, at, asked})
	}
	return denied, nil
}

// A decision is on a group, at a time in microseconds.
type decision struct {
	verdicts []algorithm.Verdict
	at       int64
}

// call decides on a group as a call of its own: the circuit is that of the group's node.
func (t *taking) call(ctx context.Context, verb string, group []member, mode string) ([]algorithm.Verdict, int64, error) {
	d, err := store.Through(ctx, t.store.circuit(group[0].name), func(ctx context.Context) (d decision, err error) {
		d.verdicts, d.at, err = t.decide(ctx, verb, group, mode)
		return d, err
	})
	return d.verdicts, d.at, err
}

// decide decides on a group. at is the time, in microseconds.
func (t *taking) decide(ctx context.Context, verb string, group []member, mode string) (_ []algorithm.Verdict, at int64, err error) {
	q := request{store: t.store, verb: verb, mode: mode, steps: make([]step, len(group))}
	for i := range group {
		q.steps[i] = group[i].step
	}
	verdicts, at, err := q.decide(ctx)
	return verdicts, group[0].at(at), err
}

// giveBack gives back what was taken, as far as the limits still hold it, also when ctx has ended. It returns the names of
// the keys for which it failed.
func (t *taking) giveBack(ctx context.Context) (kept []string, failed error) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), t.end)
	defer cancel()
	for _, taken := range t.taken {
		group := make([]member, len(taken.group))
		for i, m := range taken.group {
			group[i] = m
			group[i].op = t.back(m, taken)
		}
		verdicts, at, err := t.call(ctx, "give back", group, each)
		if err != nil {
			failed = errors.Join(failed, err)
			for _, m := range taken.group {
				kept = append(kept, m.name)
			}
			continue
		}
		for i, v := range verdicts {
			v.Granted = 0
			t.outcomes[group[i].index] = store.Outcome{Verdict: v, At: at * tick}
		}
	}
	t.taken = nil
	return kept, failed
}

// back is what gives back what a member of a group was charged.
func (t *taking) back(m member, from taken) algorithm.Op {
	if m.op.Kind == algorithm.Reserve {
		return algorithm.Op{Kind: algorithm.Commit, ID: m.op.ID}
	}
	v, elapsed := t.outcomes[m.index], time.Duration(0)
	if m.now == store.OwnClock {
		elapsed = max(1, time.Since(from.asked))
	}
	op := algorithm.Op{
		Kind: algorithm.Cancel, End: from.at + int64(v.Reset)/tick,
		Cost: m.program.Limit().Outstanding(v.Granted, v.Decision(m.capacity), elapsed),
	}
	if elapsed == 0 {
		op.Kind = algorithm.Refund // nothing has come back in no time
	}
	return op
}
