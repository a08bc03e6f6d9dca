package resp

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
)

// mostBatched bounds a batch, and with it what a connection keeps for batches.
const mostBatched = 128

// A batch holds requests that came one after another, for one limit and at no given time, and whose replies are not
// written yet. A store that need not wait decides them together, which is faster than one by one. The keys are in the
// connection's input buffer: a batch is settled before that changes.
type batch struct {
	bound     *limiters.Bound
	form      form
	requests  []store.KeyCost
	peeks     int // requests of cost 0
	decisions []algorithm.Decision
}

// add puts off a request to pass.
func (c *conn) add(bound *limiters.Bound, f form, key string, cost int64) {
	b := &c.batch
	if len(b.requests) == mostBatched || b.bound != bound || b.form != f {
		c.settle()
		b.bound, b.form = bound, f
	}
	if cost == 0 {
		b.peeks++
	}
	b.requests = append(b.requests, store.KeyCost{Key: key, Cost: cost})
}

// settle decides the requests that were put off, and writes the replies.
func (c *conn) settle() {
	if len(c.calls) > 0 {
		c.settleCalls()
	}
	b := &c.batch
	if len(b.requests) == 0 {
		return
	}
	c.decided.Add(latency.Take, len(b.requests)-b.peeks)
	c.decided.Add(latency.Peek, b.peeks)
	b.peeks = 0
	decisions, err := b.decide(c.server.ctx, b.decisions[:0])
	for _, d := range decisions {
		c.count(d.Allowed)
		c.out.write(b.form, d)
	}
	b.decisions = decisions
	failed := slices.Clone(b.requests[len(decisions):]) // an error settles what was put off
	clear(b.requests)
	b.requests = b.requests[:0]
	for _, r := range failed {
		k := call{bound: b.bound, key: r.Key, op: algorithm.Op{Cost: r.Cost}, at: store.OwnClock, form: b.form, counts: true, err: err}
		c.server.decideWithout(c.server.ctx, &k)
		c.answer(&k)
	}
}

func (b *batch) decide(ctx context.Context, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	if b.bound.Batcher != nil && len(b.requests) > 1 {
		return b.bound.Batcher.TakeMany(ctx, b.requests, store.OwnClock, decisions)
	}
	for _, r := range b.requests {
		verdict, err := b.bound.Do(ctx, r.Key, algorithm.Op{Cost: r.Cost}, store.OwnClock)
		if err != nil {
			return decisions, err
		}
		decisions = append(decisions, verdict.Decision(b.bound.Capacity))
	}
	return decisions, nil
}

func (c *conn) count(allowed bool) {
	if allowed {
		c.counts.Allowed++
	} else {
		c.counts.Denied++
	}
}
