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
// are, it is one call of the script. The slots of a cluster are otherwise looked at, then taken from in their order, and what
// was taken is given back when one denies all the same: see docs/redis.md.
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	given, err := s.given(now)
	if err != nil || len(parts) == 0 {
		return outcomes, err
	}
	joint := make([]member, len(parts))
	hopeless := false
	for i, p := range parts {
		b, ok := p.Binding.(*binding)
		if !ok { // of a store that wraps this one
			return store.TakeInTurn(ctx, parts, now, outcomes)
		}
		joint[i] = member{binding: b, name: b.names.Name(p.Key), cost: p.Cost, index: i}
		hopeless = hopeless || p.Cost > b.capacity
	}
	groups := [][]member{joint}
	if s.cluster {
		groups = bySlot(joint)
	}
	first := len(outcomes)
	outcomes = append(outcomes, make([]store.Outcome, len(parts))...)
	t := &taking{store: s, given: given, outcomes: outcomes[first:]}
	if err := t.take(ctx, groups, hopeless); err != nil {
		return outcomes[:first], err
	}
	return outcomes, nil
}

// A member is one part of a TakeAll, or of a batch.
type member struct {
	binding *binding
	name    string
	cost    int64
	index   int // among the parts
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
	given    string
	outcomes []store.Outcome
	taken    []taken
}

// A taken group has been charged, and can be given back.
type taken struct {
	group []member
	at    int64     // by the server's clock, in microseconds
	asked time.Time // by ours, before
}

// Modes of the script.
const (
	all  = "j" // all or none
	none = "l" // none, to see what stands
	each = "e"
)

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
	ops := make([]algorithm.Op, len(group))
	for i, m := range group {
		ops[i].Cost = m.cost
	}
	r, err := t.call(ctx, "take all", group, ops, mode)
	if err != nil {
		return false, err
	}
	look := r
	for i, m := range group {
		granted, old := r.next()
		v, err := m.binding.verdict(ops[i], granted, old, r.at, t.heals(m))
		if err != nil {
			return false, err
		}
		t.outcomes[m.index] = store.Outcome{Verdict: v, At: r.at * tick}
		denied = denied || v.Granted < 0
	}
	if !denied && mode == all {
		t.taken = append(t.taken, taken{group, r.at, asked})
		return false, nil
	}
	for _, m := range group { // those that would have granted stand as they stood
		_, old := look.next()
		if t.outcomes[m.index].Granted >= 0 {
			if t.outcomes[m.index].Verdict, err = m.binding.verdict(algorithm.Op{}, "+", old, r.at, t.heals(m)); err != nil {
				return false, err
			}
		}
	}
	return denied, nil
}

func (t *taking) heals(m member) bool { return m.binding.heals && t.given == "" }

// call calls the script for a group.
func (t *taking) call(ctx context.Context, verb string, group []member, ops []algorithm.Op, mode string) (reply, error) {
	keys, args := make([]string, len(group)), make([]string, 3, 3+10*len(group))
	kinds := make([]byte, len(group))
	for i, m := range group {
		keys[i], kinds[i] = m.name, m.binding.machine.letter
		args = m.binding.part(args, ops[i], t.heals(m))
	}
	args[0], args[1], args[2] = t.given, mode, string(kinds)
	text, err := t.store.run(ctx, verb, keys, args)
	if err != nil {
		return reply{}, err
	}
	return readReply(text)
}

// giveBack gives back what was taken, as far as the limits still hold it, also when ctx has ended. It returns the names of
// the keys for which it failed.
func (t *taking) giveBack(ctx context.Context) (kept []string, failed error) {
	ctx = context.WithoutCancel(ctx)
	for _, taken := range t.taken {
		ops := make([]algorithm.Op, len(taken.group))
		elapsed := time.Duration(0)
		if t.given == "" {
			elapsed = max(1, time.Since(taken.asked))
		}
		for i, m := range taken.group {
			v := t.outcomes[m.index]
			limit := m.binding.program.Limit()
			ops[i] = algorithm.Op{Kind: algorithm.Cancel, End: taken.at + int64(v.Reset)/tick}
			ops[i].Cost = limit.Outstanding(v.Granted, v.Decision(m.binding.capacity), elapsed)
			if elapsed == 0 {
				ops[i].Kind = algorithm.Refund // nothing has come back in no time
			}
		}
		r, err := t.call(ctx, "give back", taken.group, ops, each)
		if err != nil {
			failed = errors.Join(failed, err)
			for _, m := range taken.group {
				kept = append(kept, m.name)
			}
			continue
		}
		for i, m := range taken.group {
			granted, old := r.next()
			v, err := m.binding.verdict(ops[i], granted, old, r.at, t.heals(m))
			v.Granted = 0
			t.outcomes[m.index].Verdict, failed = v, errors.Join(failed, err)
		}
	}
	t.taken = nil
	return kept, failed
}
