package operation

import (
	"context"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// A Part is a key and a limit of a call of Limits.
type Part struct {
	store.Part

	bound   *store.Bound
	without *store.Bound // decided in place of the store
}

// AddPart adds the key, the name, the limit, the cost and the reservation of the call as a part. It
// returns the limit of an earlier part of the same name and key, if that is another one.
func (c *Call) AddPart() (other algorithm.Limit, conflict bool) {
	p := Part{bound: c.Bound, Part: c.Bound.Part(c.Key, c.Op.Cost)}
	p.ID = c.Op.ID
	for _, before := range c.Parts {
		if before.Key == p.Key && before.Name == p.Name && p.Name != "" && before.Limit != p.Limit {
			return before.Limit, true
		}
	}
	c.Parts = append(c.Parts, p)
	return other, false
}

// Decisions returns the decision on the request, and of each part.
func (c *Call) Decisions() (all weir.Decision, each []weir.Decision) {
	each = make([]weir.Decision, len(c.Parts))
	for i, o := range c.Outcomes {
		if p := &c.Parts[i]; p.without != nil {
			each[i] = p.without.Decision(o.Verdict)
		} else {
			each[i] = p.bound.Decision(o.Verdict)
		}
	}
	return algorithm.Together(each), each
}

// takeAll charges all parts or none.
func (c *Call) takeAll(ctx context.Context) {
	parts := make([]store.Part, len(c.Parts))
	for i := range c.Parts {
		parts[i] = c.Parts[i].Part
	}
	c.charge(ctx, parts)
}

// takeAllWithout decides on all parts after the store has failed. Reservations are not made without
// the store.
func (c *Call) takeAllWithout(ctx context.Context, on store.OnError) {
	parts, failure := make([]store.Part, len(c.Parts)), c.Err
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.ID != 0 {
			return
		}
		if p.without, c.Err = decide.Without(ctx, p.bound, on, failure); c.Err != nil {
			return
		}
		parts[i] = p.without.Part(p.Key, p.Cost)
	}
	c.Verdict, c.without = algorithm.Verdict{}, c.Parts[0].without
	c.charge(ctx, parts)
}

// charge charges the parts. The verdict is that of the request: it is granted or not.
func (c *Call) charge(ctx context.Context, parts []store.Part) {
	c.Outcomes, c.Err = store.TakeAll(ctx, parts, c.At)
	for _, o := range c.Outcomes {
		c.Verdict.Granted = min(c.Verdict.Granted, o.Granted)
	}
}
