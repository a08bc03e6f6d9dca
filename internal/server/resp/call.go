package resp

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/store"
)

// A call is an operation that a command asks for, and afterwards what came of it. The key is in the connection's input
// buffer: a call is settled before that changes.
type call struct {
	bound   *store.Bound
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
	onError *store.OnError // that the command has given; the reply then reports who decided
	audited string         // the event of the audit log, or ""
	name    string         // of the limiter, if the call is audited

	verdict algorithm.Verdict
	took    int64 // the time at which a stamped one took effect, as at
	err     error
	without *store.Bound // that decided in place of the store
	failure error        // of the store, if without is set
}

// do carries out a call, or puts it off if the store waits for an engine.
func (c *conn) do(k call) {
	if c.server.options.Waits {
		c.later(k)
		return
	}
	c.settle()
	c.decided.Add(k.operation(), 1)
	c.server.decide(c.server.ctx, &k)
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

// decide carries out a call, or decides without the store.
func (s *Server) decide(ctx context.Context, k *call) {
	if k.check != nil && k.onError != nil {
		ctx = store.WithOnError(ctx, *k.onError)
	}
	k.decide(ctx)
	s.decideWithout(ctx, k)
}

// decideWithout decides on a take for which the store has failed, as the command or the server sets.
func (s *Server) decideWithout(ctx context.Context, k *call) {
	if k.err == nil || k.check != nil || k.op.Kind != algorithm.Take && k.op.Kind != algorithm.TakeUpTo {
		return
	}
	on := s.options.OnStoreError
	if k.onError != nil {
		on = *k.onError
	}
	failure := k.err
	if k.parts != nil {
		k.parts.decideWithout(ctx, k, on)
		return
	}
	if k.without, k.err = decide.Without(ctx, k.bound, on, failure); k.err != nil {
		if k.onError == nil { // the client can't change a share that the limit does not have
			k.err = failure
		}
		return
	}
	k.verdict, k.err = k.without.Do(ctx, k.key, k.op, k.at)
	k.failure = failure
	if k.took = k.at; k.at == store.OwnClock {
		k.took = time.Now().UnixNano()
	}
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
	if k.audited != "" {
		c.audit(k)
	}
	if k.err != nil {
		if k.quiet {
			c.counts.Errors++
			_ = c.failure(k.err)
		} else {
			c.failWith(k.err)
		}
		return
	}
	if local, allowed, failure := k.decidedWithout(); failure != nil {
		c.counts.Undecided++
		switch {
		case local:
			c.counts.Local++
		case allowed:
			c.counts.FailedOpen++
		}
		c.server.logFailure(failure, "the store failed, and requests are decided without it")
	}
	if k.counts {
		c.count(k.verdict.Granted >= 0 && (k.form != tokensForm || k.verdict.Granted == k.op.Cost))
	}
	if !k.quiet {
		c.out.call(k)
	}
}

// decidedWithout returns the failure of the store without which the call was decided, or nil.
func (k *call) decidedWithout() (local, allowed bool, failure error) {
	switch {
	case k.check != nil:
		d := &k.check.decision
		return d.Local, d.Allowed, d.Err
	case k.without != nil:
		return k.without.Local, true, k.failure
	}
	return false, false, nil
}

// source is who decided, as the reply has it after ONERROR: 0 for the store, 1 for nobody, because
// the store failed, 2 for this process.
func (k *call) source() int64 {
	switch local, _, failure := k.decidedWithout(); {
	case failure == nil:
		return 0
	case local:
		return 2
	}
	return 1
}

func (r *replies) call(k *call) {
	switch {
	case k.check != nil:
		r.checked(k)
		return
	case k.parts != nil:
		r.together(k)
		return
	case k.form == tokensForm:
		r.integer(max(0, k.verdict.Granted) + k.verdict.Remaining)
		return
	}
	d := k.decision()
	if !k.granted && !k.stamped && k.onError == nil {
		r.write(k.form, d)
		return
	}
	r.array(6 + one(k.granted) + one(k.stamped) + one(k.onError != nil))
	r.decision(d, k.form.unit())
	if k.granted {
		r.integer(max(0, k.verdict.Granted))
	}
	if k.stamped {
		r.instant(k.took, k.form.unit())
	}
	if k.onError != nil {
		r.integer(k.source())
	}
}

func (k *call) decision() algorithm.Decision {
	if k.without != nil {
		return k.without.Decision(k.verdict)
	}
	return k.verdict.Decision(k.bound.Capacity)
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
