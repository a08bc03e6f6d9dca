package resp

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/server/limiters"
	"github.com/weirlimit/weir/store"
)

// mostAtOnce is how many operations one connection has under way in a store that waits for an engine.
const mostAtOnce = 64

// later puts off a call to the store, so that the calls of a pipeline wait for the engine together.
func (c *conn) later(k call) {
	if len(c.calls) == mostBatched {
		c.settle()
	}
	k.quiet = c.mute != loud
	c.calls = append(c.calls, k)
}

// settleCalls carries out the calls that were put off, and answers them in their order.
//
// They go in waves: all of a wave are under way at once, and the next begins when they are done. Calls for one
// key are in one wave only if they are in one batch, which keeps their order; else each is in the wave after the one before.
func (c *conn) settleCalls() {
	calls := c.calls
	c.calls = nil // an error settles what was put off
	ctx, cancel := context.WithTimeout(c.server.ctx, c.server.options.Timeout)
	begin := c.drainBegins()
	for wave, last := 0, c.arrange(calls); wave <= last; wave++ {
		allAtOnce(ctx, tasks(calls, wave))
	}
	c.drainLater(begin) // what arrived while the engine was waited for has not been read
	cancel()
	for i := range calls {
		c.answer(&calls[i])
	}
	clear(calls)
	c.calls = calls[:0]
}

// A place is where the last call for a key is.
type place struct {
	wave  int
	batch *limiters.Bound // or nil
}

// arrange gives each call its wave, and returns the last.
func (c *conn) arrange(calls []call) (last int) {
	if len(calls) == 1 {
		return 0
	}
	if c.places == nil {
		c.places = map[string]place{}
	}
	for i := range calls {
		k := &calls[i]
		here := place{batch: k.batch()}
		for key := range k.keys {
			if before, ok := c.places[key]; ok {
				if here.batch == nil || here.batch != before.batch {
					before.wave++
				}
				here.wave = max(here.wave, before.wave)
			}
		}
		for key := range k.keys {
			c.places[key] = here
		}
		k.wave = here.wave
		last = max(last, here.wave)
	}
	clear(c.places)
	return last
}

// batch returns the limit under which the call can be decided together with others, or nil.
func (k *call) batch() *limiters.Bound {
	if k.op.Kind != algorithm.Take || k.at != store.OwnClock || k.stamped || k.parts != nil || k.bound.Batcher == nil {
		return nil
	}
	return k.bound
}

// keys yields the keys of the call.
func (k *call) keys(yield func(string) bool) {
	if k.parts == nil {
		yield(k.key)
		return
	}
	for _, p := range k.parts.parts {
		if !yield(p.Key) {
			return
		}
	}
}

// A task is what one goroutine does: a call, or several for one limit.
type task []*call

// tasks returns what is to be done in a wave.
func tasks(calls []call, wave int) []task {
	var all []task
	batches := map[*limiters.Bound]int{}
	for i := range calls {
		k := &calls[i]
		if k.wave != wave {
			continue
		}
		if b := k.batch(); b != nil {
			at, begun := batches[b]
			if begun {
				all[at] = append(all[at], k)
				continue
			}
			batches[b] = len(all)
		}
		all = append(all, task{k})
	}
	return all
}

func allAtOnce(ctx context.Context, tasks []task) {
	if len(tasks) == 1 {
		tasks[0].run(ctx)
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(tasks), mostAtOnce) {
		all.Go(func() {
			for i := next.Add(1); int(i) <= len(tasks); i = next.Add(1) {
				tasks[i-1].run(ctx)
			}
		})
	}
	all.Wait()
}

func (t task) run(ctx context.Context) {
	if len(t) == 1 {
		t[0].decide(ctx)
		return
	}
	requests := make([]store.KeyCost, len(t))
	for i, k := range t {
		requests[i] = store.KeyCost{Key: k.key, Cost: k.op.Cost}
	}
	decisions, err := t[0].bound.Batcher.TakeMany(ctx, requests, store.OwnClock, make([]algorithm.Decision, 0, len(t)))
	for i, k := range t {
		if i >= len(decisions) {
			k.err = err
			continue
		}
		k.verdict = verdictOf(decisions[i], k.op.Cost)
	}
}

// verdictOf is what a Take of this cost ended with.
func verdictOf(d algorithm.Decision, cost int64) algorithm.Verdict {
	return algorithm.Result{Decision: d, Granted: cost}.Verdict()
}
