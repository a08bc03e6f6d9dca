package resp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/store"
)

// mostAtOnce is how many operations one connection has under way in a store that waits for an engine.
const mostAtOnce = 64

// usualCalls is the most bytes of calls that a connection puts off without an entry in the account
// of long buffers: more than those of a batch without checks and joint takes.
const usualCalls = 64 << 10

// later puts off a call to the store, so that the calls of a pipeline wait for the engine together.
// A call without room in the account waits for the calls before it; if there is none then either, it
// fails.
func (c *conn) later(k call) {
	if len(c.calls) == mostBatched || !c.holdCalls(c.callBytes+k.size()) {
		c.settle()
		if !c.holdCalls(k.size()) {
			c.fail("ERR too many calls wait for the engine at once, try again")
			return
		}
	}
	k.quiet = c.mute != loud
	c.decided.Add(k.operation(), 1)
	c.calls = append(c.calls, k)
}

// settleCalls carries out the calls that were put off, and answers them in their order. Each begins when the one before it
// for the same key is done, and waits for no other.
func (c *conn) settleCalls() {
	calls := c.calls
	c.calls = nil // an error settles what was put off
	ctx, cancel := context.WithTimeout(c.server.ctx, c.server.options.Timeout)
	begin := c.drainBegins()
	if len(calls) == 1 {
		c.server.decide(ctx, &calls[0])
	} else {
		c.allAtOnce(ctx, arrange(calls))
	}
	c.drainLater(begin) // what arrived while the engine was waited for has not been read
	cancel()
	for i := range calls {
		c.answer(&calls[i])
	}
	clear(calls)
	c.calls = calls[:0]
	c.holdCalls(0)
}

// holdCalls accounts for calls of this size, in place of those before. It returns false, and changes
// nothing, if there is no room.
func (c *conn) holdCalls(size int) bool {
	if !c.account(beyond(size, usualCalls) - beyond(c.callBytes, usualCalls)) {
		return false
	}
	c.callBytes = size
	return true
}

// Bytes that a call takes besides the bytes of its texts, about.
const (
	callSize  = 256
	partSize  = 512
	checkSize = 2 << 10 // with its decision
	fieldSize = 128     // of a header or an attribute
)

// size returns the bytes that the call takes until its reply, about. Its key is in the input buffer,
// which the account has.
func (k *call) size() int {
	n := callSize
	if k.parts != nil {
		n += len(k.parts.parts) * partSize
	}
	if k.check == nil {
		return n
	}
	n += checkSize + len(k.check.token)
	if r := k.check.request; r != nil {
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

// A task is what is asked of the store at a time: a call, or several that it decides together.
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

// arrange makes tasks of the calls. Those for one limit are one task if the store decides them together, unless others for their keys
// must come in between.
func arrange(calls []call) (tasks []*task) {
	last, open := map[string]*task{}, map[batchAt]*task{} // the last task for a key, and those that may take more
	for i := range calls {
		k := &calls[i]
		bound, level := k.batch(), 0
		for key := range k.keys {
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
		for key := range k.keys {
			if before := last[key]; before != nil && before != t {
				t.after = append(t.after, before)
			}
			last[key] = t
		}
	}
	return tasks
}

// batch returns the limit under which the call can be decided together with others, or nil.
func (k *call) batch() *store.Bound {
	if k.op.Kind != algorithm.Take || k.at != store.OwnClock || k.stamped || k.parts != nil || k.check != nil || k.bound.Batcher == nil {
		return nil
	}
	return k.bound
}

// keys yields the keys of the call.
func (k *call) keys(yield func(string) bool) {
	switch {
	case k.check != nil:
		k.check.keys(yield)
		return
	case k.parts == nil:
		yield(k.key)
		return
	}
	for _, p := range k.parts.parts {
		if !yield(p.Key) {
			return
		}
	}
}

// allAtOnce runs tasks, each when those that it comes after are done, and so many at once as a connection may.
// A panic fails the calls of its task, and ends the connection after the replies.
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
					t.fail(errPanic)
					panicked.Store(true)
				}
			}()
			t.run(ctx, c.server)
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

func (t *task) fail(err error) {
	for _, k := range t.calls {
		k.err = err
	}
}

func (t *task) run(ctx context.Context, s *Server) {
	if len(t.calls) == 1 {
		s.decide(ctx, t.calls[0])
		return
	}
	requests := make([]store.KeyCost, len(t.calls))
	for i, k := range t.calls {
		requests[i] = store.KeyCost{Key: k.key, Cost: k.op.Cost}
	}
	decisions, err := t.calls[0].bound.Batcher.TakeMany(ctx, requests, store.OwnClock, make([]algorithm.Decision, 0, len(t.calls)))
	for i, k := range t.calls {
		if i >= len(decisions) {
			k.err = err
			s.decideWithout(ctx, k)
			continue
		}
		k.verdict = verdictOf(decisions[i], k.op.Cost)
	}
}

// verdictOf is what a Take of this cost ended with.
func verdictOf(d algorithm.Decision, cost int64) algorithm.Verdict {
	return algorithm.Result{Decision: d, Granted: cost}.Verdict()
}
