package resp

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/server/limiters"
	"github.com/weirlimit/weir/store"
)

// together is what WEIR.TAKEALL asks: several limits that one request must pass.
type together struct {
	parts    []part
	take     taker
	verdicts []algorithm.Verdict
}

// A taker charges all parts or none.
type taker func(context.Context, []store.Part, int64, []store.Outcome) ([]store.Outcome, error)

// taker returns the best way to do that over the store.
func (s *Server) taker() taker {
	if joiner, ok := s.options.Limiters.Joiner(); ok {
		return joiner.TakeAll
	}
	return store.TakeInTurn
}

type part struct {
	bound *limiters.Bound
	store.Part
	name string
}

// decide charges all parts or none. The call's verdict is that of the request: it is granted or not.
func (t *together) decide(ctx context.Context, k *call) {
	states, index := t.states()
	found, err := t.take(ctx, states, k.at, make([]store.Outcome, 0, len(states)))
	if k.err = err; err != nil {
		return
	}
	t.verdicts = make([]algorithm.Verdict, len(t.parts))
	for i := range t.parts {
		t.verdicts[i] = found[index[i]].Verdict
		k.verdict.Granted = min(k.verdict.Granted, found[index[i]].Granted)
	}
}

// states returns the parts, those of one state as one of the greatest cost among them, in an order that is the same for all, and
// where among them each part is.
func (t *together) states() (states []store.Part, index []int) {
	order := make([]int, len(t.parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return t.parts[i].compare(t.parts[j]) })
	index = make([]int, len(t.parts))
	for at, i := range order {
		if at > 0 && t.parts[i].compare(t.parts[order[at-1]]) == 0 {
			last := &states[len(states)-1]
			last.Cost = max(last.Cost, t.parts[i].Cost)
		} else {
			states = append(states, t.parts[i].Part)
		}
		index[i] = len(states) - 1
	}
	return states, index
}

func (p part) compare(other part) int {
	return cmp.Or(cmp.Compare(p.Key, other.Key), cmp.Compare(p.name, other.name),
		cmp.Compare(p.Limit.String(), other.Limit.String()))
}

// together is the decision on the request, and those of its parts.
func (r *replies) together(k *call) {
	parts := k.parts.parts
	each := make([]algorithm.Decision, len(parts))
	for i, v := range k.parts.verdicts {
		each[i] = v.Decision(parts[i].bound.Capacity)
	}
	r.array(1 + len(each))
	r.write(k.form, algorithm.Together(each))
	for _, d := range each {
		r.write(k.form, d)
	}
}

// takeAll is WEIR.TAKEALL key limit [COST n] [NAME name] [AND key limit …] [AT time] [NS].
func (c *conn) takeAll() {
	t := &together{take: c.server.taker()}
	r := request{at: store.OwnClock}
	for args := c.args[1:]; args != nil; {
		var ok bool
		if args, ok = c.part(t, &r, args); !ok {
			return
		}
	}
	if !c.timeOf(&r) {
		return
	}
	c.do(call{bound: t.parts[0].bound, at: r.at, form: r.form(), counts: true, parts: t})
}

// part reads a key, a limit and the options up to AND, and returns what is left after that: nil if there was none.
func (c *conn) part(t *together, r *request, args [][]byte) (rest [][]byte, ok bool) {
	if len(args) < 2 {
		c.fail("ERR syntax error: AND needs a key and a limit")
		return nil, false
	}
	key, ok := c.key(args[0])
	if !ok {
		return nil, false
	}
	r.cost, r.name, r.given = 1, nil, r.given&^(costOption|nameOption)
	left, ok := c.options(r, args[2:], costOption|nameOption|atOption|nsOption|andOption)
	if !ok {
		return nil, false
	}
	bound, err := c.server.options.Limiters.Bind(r.name, args[1], false)
	if err != nil {
		c.failWith(err)
		return nil, false
	}
	t.parts = append(t.parts, part{
		bound: bound, name: string(r.name),
		Part: store.Part{Binding: bound.Binding, Limit: bound.Limit, Key: key, Cost: r.cost},
	})
	return left, true
}
