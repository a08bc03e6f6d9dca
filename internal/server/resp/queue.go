package resp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// mostQueued bounds the queue of a connection.
const mostQueued = 128

// A call is an operation of a command, and the form of its reply.
type call struct {
	operation.Call

	form form
}

// A pending is a decision of a command, whose reply is not written yet. The key, and the texts of the
// call, are in the connection's input buffer: the queue is settled before that changes.
type pending struct {
	call  *call // nil: a take without arguments but its cost, of the fields below
	bound *store.Bound
	key   string
	cost  int64
	form  form
	quiet bool // there is no reply
}

// take is the operation of a pending without a call.
var take = operation.ByCommand("weir.take")

// newCall returns a call, which is good until the next one. Over an engine it is good until it is
// settled.
func (c *conn) newCall(o *operation.Operation) *call {
	k := c.scratch
	switch {
	case c.server.options.Waits:
		k = new(call)
	case k == nil:
		k = new(call)
		c.scratch = k
	}
	k.Begin(o)
	k.form = decisionForm
	return k
}

// do queues a call if the store waits for an engine, so that the calls of a pipeline wait together.
// Otherwise it runs the call.
func (c *conn) do(k *call) {
	if c.server.options.Waits {
		c.put(pending{call: k})
		return
	}
	c.settle()
	c.decided.Add(k.Label(), 1)
	c.server.options.Do(c.server.ctx, &k.Call)
	c.answer(k, c.mute != loud)
	if k.Form != operation.OneLimit {
		*k = call{} // its request or its parts may be long
	}
}

// put queues a decision. One without room in the account waits for those before it; if there are none
// then either, it fails.
func (c *conn) put(p pending) {
	size := 0
	if c.server.options.Waits {
		size = p.size()
	}
	if len(c.queue) == mostQueued || !c.holdQueue(c.queueBytes+size) {
		c.settle()
		if !c.holdQueue(size) {
			c.fail("ERR too many calls wait for the engine at once, try again")
			return
		}
	}
	p.quiet = c.mute != loud
	c.queue = append(c.queue, p)
}

// settle decides what is queued, and writes the replies.
func (c *conn) settle() {
	if len(c.queue) == 0 {
		return
	}
	queue := c.queue
	c.queue = nil // an error settles what is queued
	if c.server.options.Waits {
		c.settleAtOnce(queue)
	} else {
		for rest := queue; len(rest) > 0; {
			rest = c.settleRun(rest)
		}
	}
	clear(queue)
	c.queue = queue[:0]
	c.holdQueue(0)
}

// settleRun decides the first takes of a queue that are of one limit, together, and returns the rest.
func (c *conn) settleRun(queue []pending) (rest []pending) {
	first, n, peeks := &queue[0], 0, 0
	requests := c.requests[:0]
	for ; n < len(queue) && queue[n].bound == first.bound && queue[n].form == first.form && queue[n].quiet == first.quiet; n++ {
		if queue[n].cost == 0 {
			peeks++
		}
		requests = append(requests, store.KeyCost{Key: queue[n].key, Cost: queue[n].cost})
	}
	c.decided.Add(latency.Take, n-peeks)
	c.decided.Add(latency.Peek, peeks)
	decisions, err := first.bound.TakeMany(c.server.ctx, requests, store.OwnClock, c.decisions[:0])
	for i := range decisions {
		d := &decisions[i]
		c.counts.Decide(d.Allowed)
		if !first.quiet {
			c.out.form(first.form, d)
		}
	}
	if len(decisions) < n {
		c.answerFailed(queue[len(decisions):n], err)
	}
	clear(requests)
	c.requests, c.decisions = requests[:0], decisions[:0]
	return queue[n:]
}

// answerFailed answers takes for which the store has failed.
func (c *conn) answerFailed(failed []pending, err error) {
	for i := range failed {
		k := failed[i].take(new(call))
		k.Err = err
		c.server.options.DoWithout(c.server.ctx, &k.Call)
		c.answer(k, failed[i].quiet)
	}
}

// take makes k the call of a pending without one.
func (p *pending) take(k *call) *call {
	k.Begin(take)
	k.Bound, k.Key, k.Op.Cost, k.form = p.bound, p.key, p.cost, p.form
	return k
}

// settleAtOnce runs the calls of a queue at once, and answers them in their order. Each begins when
// the one before it for the same key is done, and waits for no other.
func (c *conn) settleAtOnce(queue []pending) {
	takes := make([]call, len(queue))
	for i := range queue {
		if p := &queue[i]; p.call == nil {
			p.call = p.take(&takes[i])
		}
		c.decided.Add(queue[i].call.Label(), 1)
	}
	ctx, cancel := c.server.options.Within(c.server.ctx)
	begin := c.drainBegins()
	if len(queue) == 1 {
		c.server.options.Do(ctx, &queue[0].call.Call)
	} else {
		c.allAtOnce(ctx, c.arrange(queue))
	}
	c.drainLater(begin) // what arrived while the engine was waited for has not been read
	cancel()
	for i := range queue {
		c.answer(queue[i].call, queue[i].quiet)
	}
}

// answer writes the reply to a call, and counts.
func (c *conn) answer(k *call, quiet bool) {
	if k.Audit != "" && c.server.options.Audit != nil {
		c.server.options.Record(&k.Call, "resp", c.net.RemoteAddr().String(), c.user)
	}
	switch {
	case k.Err != nil && quiet:
		c.counts.Errors++
		_, _ = c.server.options.FaultOf(k.Err, &c.counts, "resp")
	case k.Err != nil:
		c.failWith(k.Err, k.Next)
	default:
		c.server.options.Count(&k.Call, &c.counts, "resp")
		if !quiet {
			c.out.call(k)
		}
	}
}

// usualQueue is the most bytes of a queue without an entry in the account of long buffers: more than
// those of one without checks and joint takes.
const usualQueue = 64 << 10

// holdQueue accounts for a queue of this size, in place of the one before. It returns false, and
// changes nothing, if there is no room.
func (c *conn) holdQueue(size int) bool {
	if size == c.queueBytes {
		return true
	}
	if !c.account(beyond(size, usualQueue) - beyond(c.queueBytes, usualQueue)) {
		return false
	}
	c.queueBytes = size
	return true
}

// Bytes that a call takes besides the bytes of its texts, about.
const (
	callSize  = 256
	partSize  = 512
	checkSize = 2 << 10 // with its decision
	fieldSize = 128     // of a header or an attribute
)

// size returns the bytes that a pending takes until its reply, about. Its key is in the input buffer,
// which the account has.
func (p *pending) size() int {
	n := callSize
	if p.call == nil {
		return n
	}
	n += len(p.call.Parts) * partSize
	if p.call.Form == operation.Request || p.call.Form == operation.Settlement {
		n += checkSize + len(p.call.Token)
	}
	if r := p.call.Request; r != nil {
		n += len(r.Method) + len(r.Host) + len(r.Path) + len(r.RawQuery)
		for name, values := range r.Header {
			n += fieldSize + len(name)
			for _, v := range values {
				n += len(v) + 16
			}
		}
		for name, value := range r.Attributes {
			n += fieldSize + len(name) + len(value)
		}
	}
	return n
}

// A task is a call, or several that the store decides together.
type task struct {
	calls []*call
	level int // above that of all tasks it comes after
	after []*task
	done  chan struct{}
}

// A batchAt is a limit whose calls are decided together, and the level of those.
type batchAt struct {
	bound *store.Bound
	level int
}

// arrange makes tasks of the calls. Those for one limit are one task if the store decides them
// together, unless others for their keys must come in between.
func (c *conn) arrange(queue []pending) (tasks []*task) {
	last, open := map[string]*task{}, map[batchAt]*task{} // the last task for a key, and those that may take more
	for i := range queue {
		k, level := queue[i].call, 0
		var bound *store.Bound // nil: the call is decided alone
		if k.Batches() {
			bound = k.Bound
		}
		keys := k.Keys(c.server.options.Policies)
		for _, key := range keys {
			if before := last[key]; before != nil && (bound == nil || open[batchAt{bound, before.level}] != before) {
				level = max(level, before.level+1)
			} else if before != nil {
				level = max(level, before.level)
			}
		}
		t := open[batchAt{bound, level}]
		if bound == nil || t == nil {
			t = &task{level: level, done: make(chan struct{})}
			tasks = append(tasks, t)
		}
		if bound != nil {
			open[batchAt{bound, level}] = t
		}
		t.calls = append(t.calls, k)
		for _, key := range keys {
			if before := last[key]; before != nil && before != t {
				t.after = append(t.after, before)
			}
			last[key] = t
		}
	}
	return tasks
}

// mostAtOnce is how many operations one connection has under way in a store that waits for an engine.
const mostAtOnce = 64

// allAtOnce runs tasks, each when those that it comes after are done, and as many at once as a
// connection may. A panic fails the calls of its task, and ends the connection after the replies.
func (c *conn) allAtOnce(ctx context.Context, tasks []*task) {
	slots := make(chan struct{}, mostAtOnce)
	var all sync.WaitGroup
	var panicked atomic.Bool
	for _, t := range tasks {
		all.Go(func() {
			defer close(t.done)
			for _, before := range t.after {
				<-before.done
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			defer func() {
				if c.server.options.Panics.Caught("resp: decide", recover()) {
					for _, k := range t.calls {
						k.Err = errPanic
					}
					panicked.Store(true)
				}
			}()
			t.run(ctx, c.server.options.Service)
		})
	}
	all.Wait()
	if panicked.Load() {
		c.server.guard.Count(guard.Panic, c.net.RemoteAddr().String())
		c.closing = true
	}
}

// errPanic is the error of calls whose task panicked.
var errPanic = errors.New("resp: the decision panicked")

func (t *task) run(ctx context.Context, s *operation.Service) {
	if len(t.calls) == 1 {
		s.Do(ctx, &t.calls[0].Call)
		return
	}
	requests := make([]store.KeyCost, len(t.calls))
	for i, k := range t.calls {
		requests[i] = store.KeyCost{Key: k.Key, Cost: k.Op.Cost}
	}
	decisions, err := t.calls[0].Bound.TakeMany(ctx, requests, store.OwnClock, make([]algorithm.Decision, 0, len(t.calls)))
	for i, k := range t.calls {
		if i < len(decisions) {
			k.Verdict = algorithm.Result{Decision: decisions[i], Granted: k.Op.Cost}.Verdict()
			continue
		}
		k.Err = err
		s.DoWithout(ctx, &k.Call)
	}
}
