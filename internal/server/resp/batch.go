package resp

import (
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/store"
)

// mostBatched bounds a batch, and with it what a connection keeps for batches.
const mostBatched = 128

// A batch holds requests that came one after another, for one limit and at no given time, and whose replies are not
// written yet. A store that need not wait decides them together, which is faster than one by one. The keys are in the
// connection's input buffer: a batch is settled before that changes.
type batch struct {
	bound     *store.Bound
	form      form
	requests  []store.KeyCost
	peeks     int // requests of cost 0
	decisions []algorithm.Decision
}

// add puts off a request to pass.
func (c *conn) add(bound *store.Bound, f form, key string, cost int64) {
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
	decisions, err := b.bound.TakeMany(c.server.ctx, b.requests, store.OwnClock, b.decisions[:0])
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

func (c *conn) count(allowed bool) {
	if allowed {
		c.counts.Allowed++
	} else {
		c.counts.Denied++
	}
}
