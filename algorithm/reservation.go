package algorithm

import (
	"cmp"
	"slices"
)

// MaxHolds is how many reservations of one key can wait to be settled.
const MaxHolds = 1024

// A Hold is a reservation that can be settled.
type Hold struct {
	ID      int64
	Units   int64
	At, End int64 // of the Take, and when the key would have been fresh after it
	Left    int64 // what remained after it
	Expires int64 // when nobody can settle it any more, and it is given back
}

func (h Hold) before(other Hold) int { return cmp.Compare(h.Expires, other.Expires) }

func (o *opened) find(id int64) int {
	return slices.IndexFunc(o.Holds, func(h Hold) bool { return h.ID == id })
}

func (o *opened) reserve(p *Program, op Op, now int64) (r Result) {
	if i := o.find(op.ID); i >= 0 { // a renewal, or a retry
		h := o.Holds[i]
		o.Holds = slices.Delete(o.Holds, i, i+1)
		h.Expires = max(h.Expires, o.expiry(op, now))
		o.hold(h)
		r.Decision, r.Granted = o.peek(p, now), h.Units
		r.Allowed, r.RetryAfter = true, 0
		return r
	}
	if o.Owed == 0 && len(o.Holds) >= MaxHolds {
		trial := *o
		trial.state = slices.Clone(o.state)
		r = trial.take(p, Op{Cost: op.Cost}, now)
		r.Decision, r.RetryAfter = o.peek(p, now), max(r.RetryAfter, o.p.duration(o.Holds[0].Expires-now))
		r.Allowed, r.Granted = false, 0
		return r
	}
	// cost 0 too: the cost may be known at the end only
	if r = o.take(p, Op{Kind: Reserve, Cost: op.Cost}, now); r.Allowed {
		o.hold(Hold{
			ID: op.ID, Units: op.Cost, At: now, End: now + int64(r.ResetAfter)/p.tick, Left: r.Remaining,
			Expires: o.expiry(op, now),
		})
	}
	return r
}

// expiry returns the time at which a reservation made or renewed now expires.
func (o *opened) expiry(op Op, now int64) int64 {
	return now + min(max(1, op.Life), maxSpan/o.p.tick)
}

// hold adds a reservation.
func (o *opened) hold(h Hold) {
	i, _ := slices.BinarySearchFunc(o.Holds, h, func(other, h Hold) int {
		if other.Expires <= h.Expires {
			return -1
		}
		return 1
	})
	o.Holds = slices.Insert(o.Holds, i, h)
}

// commit settles a reservation under the limit of the record.
func (o *opened) commit(p *Program, op Op, now int64) (r Result) {
	i := o.find(op.ID)
	late := op.Late && op.Cost > 0
	if i < 0 && !late {
		r.Decision = o.peek(p, now)
		r.Allowed, r.RetryAfter, r.Delay = false, Never, 0
		return r
	}
	var h Hold
	if i >= 0 {
		h = o.Holds[i]
		o.Holds = slices.Delete(o.Holds, i, i+1)
	}
	if op.Cost <= h.Units {
		o.giveBack(h, h.Units-op.Cost, now)
	} else {
		o.owe(op.Cost-h.Units, now)
	}
	o.pay(now)
	r.Decision, r.Granted = o.peek(p, now), op.Cost
	return r
}

// giveBack gives back units of a reservation that have not come back by themselves.
func (o *opened) giveBack(h Hold, units, now int64) {
	if units > 0 && len(o.state) > 0 {
		o.state = o.p.giveBack(o.state, h, units, now)
	}
}

func (p *Program) giveBack(state []int64, h Hold, units, now int64) []int64 {
	taken := Decision{Allowed: true, Limit: p.capacity, Remaining: h.Left, ResetAfter: p.duration(h.End - h.At)}
	back := p.limit.Outstanding(units, taken, p.duration(max(0, now-h.At)))
	switch {
	case back <= 0:
		return state
	case now <= h.At: // nothing has come back in no time
		return p.machine.refund(state, back, now)
	}
	state, _ = p.cancel(state, back, h.End, now)
	return state
}
