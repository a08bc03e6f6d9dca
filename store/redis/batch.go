package redis

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// chunk is how many requests of a batch one call of the script decides. Longer, and it keeps the server from others.
const chunk = 64

// TakeMany implements [store.Batcher]. One call of the script decides up to 64 requests, each for itself; in a cluster, those of one
// slot.
func (b *binding) TakeMany(
	ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision,
) ([]algorithm.Decision, error) {
	if _, err := b.store.told(now); err != nil {
		return decisions, err
	}
	members := make([]member, len(requests))
	for i, r := range requests {
		st, err := b.newStep(r.Key, algorithm.Op{Cost: r.Cost}, now)
		if err != nil {
			return decisions, err
		}
		members[i] = member{step: st, index: i}
	}
	groups := [][]member{members}
	if b.store.cluster {
		groups = bySlot(members)
	}
	t := &taking{store: b.store, outcomes: make([]store.Outcome, len(requests))}
	done, err := t.takeEach(ctx, groups)
	for _, o := range t.outcomes[:done] {
		decisions = append(decisions, o.Decision(b.capacity))
	}
	return decisions, err
}

// takeEach returns how many requests, from the first, have a verdict.
func (t *taking) takeEach(ctx context.Context, groups [][]member) (int, error) {
	decided := make([]bool, len(t.outcomes))
	var failed error
	for _, group := range groups {
		for len(group) > 0 && failed == nil {
			n := min(chunk, len(group))
			if failed = t.askEach(ctx, group[:n]); failed == nil {
				for _, m := range group[:n] {
					decided[m.index] = true
				}
			}
			group = group[n:]
		}
	}
	done := 0
	for done < len(decided) && decided[done] {
		done++
	}
	if failed != nil && slices.Contains(decided, true) {
		failed = &partial{"take many: some requests of the batch had been decided before", failed}
	}
	return done, failed
}

func (t *taking) askEach(ctx context.Context, group []member) error {
	verdicts, _, err := t.decide(ctx, "take many", group, each)
	for i, v := range verdicts {
		t.outcomes[group[i].index].Verdict = v
	}
	return err
}
