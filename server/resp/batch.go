package resp

import (
	"context"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// mostBatched bounds a batch, and with it what a connection keeps for batches.
const mostBatched = 128

// A batch holds requests that came one after another, for one limit and at no given time, and whose replies are not
// written yet. The store decides them together, which is faster than one by one. The keys are in the
// connection's input buffer: a batch is settled before that changes.
type batch struct {
	limiter   *weir.Limiter // or:
	throttle  throttle
	binding   store.Binding // of the throttle
	form      form
	requests  []weir.Request
	decisions []weir.Decision
}

// A form is how a decision is written.
type form uint8

const (
	weirForm form = iota
	redisCellForm
	throttlecrabForm
)

// add puts off a request to the limiter, or if that is nil to the throttle that is bound.
func (c *conn) add(l *weir.Limiter, f form, key string, cost int64) {
	b := &c.batch
	if len(b.requests) == mostBatched || b.limiter != l || b.form != f {
		c.settle()
		b.limiter, b.form = l, f
	}
	b.requests = append(b.requests, weir.Request{Key: key, Cost: cost})
}

// settle decides the requests that were put off, and writes the replies.
func (c *conn) settle() {
	b := &c.batch
	if len(b.requests) == 0 {
		return
	}
	decisions, err := b.decide(c.server.ctx, b.decisions[:0])
	for _, d := range decisions {
		c.count(d.Allowed)
		c.write(b.form, d)
	}
	undecided := len(b.requests) - len(decisions)
	b.decisions = decisions
	clear(b.requests)
	b.requests = b.requests[:0]
	for range undecided {
		c.failWith(err)
	}
}

func (b *batch) decide(ctx context.Context, decisions []weir.Decision) ([]weir.Decision, error) {
	switch {
	case b.limiter == nil:
		return b.decideThrottle(ctx, decisions)
	case len(b.requests) > 1:
		return b.limiter.TakeMany(ctx, b.requests, decisions)
	}
	d, err := b.limiter.Take(ctx, b.requests[0].Key, b.requests[0].Cost)
	if err != nil {
		return decisions, err
	}
	return append(decisions, d), nil
}

func (b *batch) decideThrottle(ctx context.Context, decisions []weir.Decision) ([]weir.Decision, error) {
	if batcher, ok := b.binding.(store.Batcher); ok && len(b.requests) > 1 {
		return batcher.TakeMany(ctx, b.requests, store.OwnClock, decisions)
	}
	for _, r := range b.requests {
		verdict, err := b.binding.Do(ctx, r.Key, algorithm.Op{Cost: r.Cost}, store.OwnClock)
		if err != nil {
			return decisions, err
		}
		decisions = append(decisions, verdict.Decision(b.throttle.capacity))
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

func (c *conn) write(f form, d weir.Decision) {
	switch f {
	case redisCellForm:
		c.out.redisCell(d)
	case throttlecrabForm:
		c.out.throttlecrab(d)
	default:
		c.out.decision(d)
	}
}

// redisCell is the reply to CL.THROTTLE.
func (r *replies) redisCell(d weir.Decision) {
	retry := int64(-1)
	if !d.Allowed {
		retry = wholeUnits(d.RetryAfter, time.Second)
	}
	r.buf = append(r.buf, "*5\r\n"...)
	r.verdict(!d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(retry)
	r.wait(d.ResetAfter, time.Second)
}

// throttlecrab is the reply to THROTTLE.
func (r *replies) throttlecrab(d weir.Decision) {
	r.buf = append(r.buf, "*5\r\n"...)
	r.verdict(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.wait(d.ResetAfter, time.Second)
	r.wait(d.RetryAfter, time.Second)
}
