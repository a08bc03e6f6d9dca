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

func (o *opened) reserve(op Op, now int64) (r Result) {
	i := o.find(op.ID)
	switch {
	case i >= 0: // a renewal, or a retry
		h := o.Holds[i]
		o.Holds = slices.Delete(o.Holds, i, i+1)
		h.Expires = max(h.Expires, o.expiry(op, now))
		o.hold(h)
		r.Decision, r.Granted = o.peek(now), h.Units
		r.Allowed, r.RetryAfter = true, 0
		return r
	case o.Owed > 0:
		return o.refuse(op, now)
	case len(o.Holds) >= MaxHolds:
		_, r = o.p.Apply(slices.Clone(o.state), Op{Cost: op.Cost}, now)
		r.Decision, r.RetryAfter = o.peek(now), max(r.RetryAfter, o.p.duration(o.Holds[0].Expires-now))
		r.Allowed, r.Granted = false, 0
		return r
	}
	o.state, r = o.p.Apply(o.state, Op{Cost: op.Cost}, now)
	if r.Allowed { // of cost 0 too: it may be known at the end only
		o.charge(op.Cost, now)
		o.hold(Hold{
			ID: op.ID, Units: op.Cost, At: now, End: now + int64(r.ResetAfter)/o.p.tick, Left: r.Remaining,
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

func (o *opened) commit(op Op, now int64) (r Result) {
	i := o.find(op.ID)
	switch {
	case i < 0 && op.Late && op.Cost > 0:
		o.owe(op.Cost, now)
		r.Decision, r.Granted = o.peek(now), op.Cost
		return r
	case i < 0:
		r.Decision = o.peek(now)
		r.Allowed, r.RetryAfter, r.Delay = false, Never, 0
		return r
	}
	h := o.Holds[i]
	o.Holds = slices.Delete(o.Holds, i, i+1)
	if op.Cost <= h.Units {
		o.giveBack(h, h.Units-op.Cost, now)
	} else {
		o.owe(op.Cost-h.Units, now)
	}
	o.pay(now)
	r.Decision, r.Granted = o.peek(now), op.Cost
	return r
}

// giveBack gives back units of a reservation, as far as the limit still holds them.
func (o *opened) giveBack(h Hold, units, now int64) {
	if units <= 0 {
		return
	}
	if own := units - min(units, o.missed(now)); own > 0 && len(o.state) > 0 {
		o.state = o.p.giveBack(o.state, h, own, now)
	}
	for i := range o.Formers {
		f := &o.Formers[i]
		if !f.Program.inWindow(f.State, h.At, now) {
			f.cancel(units, h.End, now)
		} else if back := f.unmiss(units); back > 0 {
			f.State = f.Program.machine.refund(f.State, back, now)
		}
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

// inWindow reports whether the limit counts in windows, and is still in the one in which something was taken.
func (p *Program) inWindow(state []int64, taken, now int64) bool {
	if len(state) == 0 {
		return false
	}
	switch m := p.machine.(type) {
	case fixedWindow:
		return state[0] == floorDiv(taken, m.width) && state[0] == floorDiv(now, m.width)
	case quotaReset:
		return m.open(state, now) && state[0] <= taken
	case calendar:
		w := m.window(now)
		return w.start <= taken && w.start <= state[0] && state[0] < w.end
	}
	return false
}
