package resp

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/server/latency"
	"github.com/weirlimit/weir/server/limiters"
	"github.com/weirlimit/weir/store"
)

// A call is an operation that a command asks for, and afterwards what came of it. The key is in the connection's input
// buffer: a call is settled before that changes.
type call struct {
	bound   *limiters.Bound
	key     string
	op      algorithm.Op
	at      int64 // nanoseconds since 1970, or store.OwnClock
	form    form
	granted bool // the reply says how many units
	stamped bool // the reply says the time
	counts  bool // the verdict is counted
	quiet   bool // there is no reply
	parts   *together
	check   *checking

	verdict algorithm.Verdict
	took    int64 // the time at which a stamped one took effect, as at
	err     error
}

// do carries out a call, or puts it off if the store waits for an engine.
func (c *conn) do(k call) {
	if c.server.options.Waits {
		c.later(k)
		return
	}
	c.settle()
	c.decided.Add(k.operation(), 1)
	k.decide(c.server.ctx)
	c.answer(&k)
}

// operation returns the kind of decision.
func (k *call) operation() latency.Operation {
	switch {
	case k.parts != nil:
		return latency.TakeAll
	case k.check == nil:
		return latency.Of(k.op)
	case k.check.request == nil:
		return latency.Settle
	}
	return latency.Check
}

func (k *call) decide(ctx context.Context) {
	switch {
	case k.check != nil:
		k.verdict, k.err = k.check.decide(ctx)
	case k.parts != nil:
		k.parts.decide(ctx, k)
	case k.stamped:
		k.verdict, k.took, k.err = k.bound.DoStamped(ctx, k.key, k.op, k.at)
	default:
		k.verdict, k.err = k.bound.Do(ctx, k.key, k.op, k.at)
	}
}

// answer writes the reply, and counts.
func (c *conn) answer(k *call) {
	if k.err != nil {
		if k.quiet {
			c.counts.Errors++
			_ = c.failure(k.err)
		} else {
			c.failWith(k.err)
		}
		return
	}
	if k.check != nil && k.check.decision.Err != nil { // the policies said what happens then
		c.counts.Undecided++
		c.server.logFailure(k.check.decision.Err)
	}
	if k.counts {
		c.count(k.verdict.Granted >= 0 && (k.form != tokensForm || k.verdict.Granted == k.op.Cost))
	}
	if !k.quiet {
		c.out.call(k)
	}
}

func (r *replies) call(k *call) {
	switch {
	case k.check != nil:
		r.checked(k.check)
		return
	case k.parts != nil:
		r.together(k)
		return
	case k.form == tokensForm:
		r.integer(max(0, k.verdict.Granted) + k.verdict.Remaining)
		return
	}
	d := k.verdict.Decision(k.bound.Capacity)
	if !k.granted && !k.stamped {
		r.write(k.form, d)
		return
	}
	r.array(6 + one(k.granted) + one(k.stamped))
	r.decision(d, k.form.unit())
	if k.granted {
		r.integer(max(0, k.verdict.Granted))
	}
	if k.stamped {
		r.integer(instant(k.took, k.form.unit()))
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// instant writes nanoseconds since 1970 in a unit, rounded down.
func instant(ns int64, unit time.Duration) int64 {
	if unit == time.Nanosecond {
		return ns
	}
	return store.Microseconds(ns)
}
