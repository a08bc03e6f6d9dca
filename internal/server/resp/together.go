package resp

import (
	"context"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// together is what WEIR.TAKEALL asks: several limits that one request must pass.
type together struct {
	parts    []part
	outcomes []store.Outcome
}

type part struct {
	store.Part
	bound   *store.Bound
	life    []byte       // what is read when it is known in which unit
	without *store.Bound // that decided in place of the store
}

// decide charges all parts or none. The call's verdict is that of the request: it is granted or not.
func (t *together) decide(ctx context.Context, k *call) {
	parts := make([]store.Part, len(t.parts))
	for i := range t.parts {
		parts[i] = t.parts[i].Part
	}
	t.outcomes, k.err = store.TakeAll(ctx, parts, k.at)
	t.judge(k)
}

// decideWithout decides on all parts after the store has failed. Reservations are not made without
// the store.
func (t *together) decideWithout(ctx context.Context, k *call, on store.OnError) {
	parts, failure := make([]store.Part, len(t.parts)), k.err
	for i := range t.parts {
		p := &t.parts[i]
		if p.ID != 0 {
			return
		}
		if p.without, k.err = decide.Without(ctx, p.bound, on, failure); k.err != nil {
			if k.onError == nil {
				k.err = failure
			}
			return
		}
		parts[i] = p.without.Part(p.Key, p.Cost)
	}
	k.verdict = algorithm.Verdict{}
	if t.outcomes, k.err = store.TakeAll(ctx, parts, k.at); k.err != nil {
		return
	}
	t.judge(k)
	k.without, k.failure = t.parts[0].without, failure
}

// judge sets the verdict of the request by the outcomes of its parts.
func (t *together) judge(k *call) {
	for _, o := range t.outcomes {
		k.verdict.Granted = min(k.verdict.Granted, o.Granted)
	}
}

// together is the decision on the request, those of its parts, and after ONERROR who decided.
func (r *replies) together(k *call) {
	parts := k.parts.parts
	each := make([]algorithm.Decision, len(parts))
	for i, o := range k.parts.outcomes {
		if without := parts[i].without; without != nil {
			each[i] = without.Decision(o.Verdict)
		} else {
			each[i] = o.Decision(parts[i].bound.Capacity)
		}
	}
	r.array(1 + len(each) + one(k.onError != nil))
	r.write(k.form, algorithm.Together(each))
	for i, d := range each {
		reserved, o := parts[i].ID != 0, k.parts.outcomes[i]
		r.array(6 + one(reserved) + one(k.stamped))
		r.decision(d, k.form.unit())
		if reserved {
			r.integer(max(0, o.Granted))
		}
		if k.stamped {
			r.instant(o.At, k.form.unit())
		}
	}
	if k.onError != nil {
		r.integer(k.source())
	}
}

// instant is a time, or null if the store does not tell it.
func (r *replies) instant(ns int64, unit time.Duration) {
	if ns == store.OwnClock {
		r.null()
	} else {
		r.integer(instant(ns, unit))
	}
}

// takeAll is WEIR.TAKEALL key limit [COST n] [NAME name] [ID id LIFE time] [AND key limit …] [AT time] [NS] [TIME] [ONERROR deny|allow|local].
func (c *conn) takeAll() {
	t := &together{}
	r := request{at: store.OwnClock}
	for args := c.args[1:]; args != nil; {
		var ok bool
		if args, ok = c.part(t, &r, args); !ok {
			return
		}
	}
	if !c.timeOf(&r) || !c.lifetimes(t, r.form()) {
		return
	}
	if r.given&onErrorOption != 0 && slices.ContainsFunc(t.parts, func(p part) bool { return p.ID != 0 }) {
		c.fail("ERR ONERROR is given with ID; accepted: one of them, because the store alone makes reservations")
		return
	}
	c.do(call{bound: t.parts[0].bound, at: r.at, form: r.form(), counts: true, stamped: r.given&timeOption != 0, parts: t, onError: r.choice()})
}

// part reads a key, a limit and the options up to AND, and returns what is left after that: nil if there was none.
func (c *conn) part(t *together, r *request, args [][]byte) (rest [][]byte, ok bool) {
	const ofPart = costOption | nameOption | idOption | lifeOption
	if len(args) < 2 {
		c.fail("ERR syntax error: AND needs a key and a limit")
		return nil, false
	}
	key, ok := c.key(args[0])
	if !ok {
		return nil, false
	}
	r.cost, r.name, r.id, r.given = 1, nil, 0, r.given&^ofPart
	left, ok := c.options(r, args[2:], ofPart|atOption|nsOption|timeOption|andOption|onErrorOption)
	if !ok {
		return nil, false
	}
	if r.given&(idOption|lifeOption) != 0 && !c.complete(r, idOption|lifeOption) {
		return nil, false
	}
	if !c.permitsKey(c.last.right, text(r.name), key) {
		return nil, false
	}
	bound, err := c.server.options.Limiters.Bind(r.name, args[1], false)
	if err != nil {
		c.failWith(err)
		return nil, false
	}
	p := part{bound: bound, life: r.lifeText, Part: bound.Part(key, r.cost)}
	p.ID = r.id
	for _, other := range t.parts {
		if other.Key == key && other.Name == p.Name && p.Name != "" && other.Limit != p.Limit {
			c.fail("ERR limit of NAME " + excerpt(r.name) + " is " + other.Limit.String() + " and " + p.Limit.String() + " for one key; accepted: one limit for each name")
			return nil, false
		}
	}
	r.given &^= lifeOption // which is read when the unit is known
	t.parts = append(t.parts, p)
	return left, true
}

// lifetimes reads the lives of reservations.
func (c *conn) lifetimes(t *together, f form) (ok bool) {
	for i := range t.parts {
		if p := &t.parts[i]; p.ID != 0 {
			if p.Life, ok = c.lifetime(p.life, f.unit()); !ok {
				return false
			}
		}
	}
	return true
}
