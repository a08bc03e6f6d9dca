package memory

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// batchSize is how many keys are looked up together. More than the cache misses that a core can have under
// way at once would not help.
const batchSize = 32

// TakeMany implements [store.Batcher]. It finds the slots of many keys before it decides on the first, so
// that the waits for memory overlap.
func (b *wordBinding) TakeMany(_ context.Context, requests []store.KeyCost, given int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	for len(requests) > 0 {
		n := min(batchSize, len(requests))
		var err error
		if decisions, err = b.takeBatch(requests[:n], given, decisions); err != nil {
			return decisions, err
		}
		requests = requests[n:]
	}
	return decisions, nil
}

func (b *wordBinding) takeBatch(requests []store.KeyCost, given int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	now, ok := b.word.Units(b.store.now(given))
	if !ok {
		return decisions, store.ErrTime
	}
	var fps [batchSize]fingerprint
	var homes [batchSize]*slot
	for i := range requests {
		fps[i] = b.store.hasher.hash(requests[i].Key).with(b.pad)
		homes[i] = b.table.segment(fps[i]).home(fps[i])
	}
	var touched uint64
	for i := range requests { // loads that do not depend on one another
		touched |= homes[i].lo.Load()
	}
	_ = touched
	for i, r := range requests {
		var v algorithm.Verdict
		s, found := b.table.segment(fps[i]).probe(fps[i])
		if found {
			v, found = b.take(s, r.Cost, now, given == store.OwnClock)
		}
		if !found {
			// What comes later in the batch is decided no earlier.
			v, now = b.update(fps[i], algorithm.Op{Cost: r.Cost}, now, given == store.OwnClock)
		}
		decisions = append(decisions, v.Decision(b.capacity))
	}
	return decisions, nil
}
