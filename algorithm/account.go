package algorithm

import (
	"slices"
	"time"
)

// Bounds on what an account keeps besides the state.
const (
	// MaxHolds is how many reservations of one key can wait to be settled.
	MaxHolds = 1024
	// maxOwed is how many capacities a key can owe. What is beyond that is forgiven.
	maxOwed = 1024
)

// An Account is what is kept of a key under a name: the state, and whose it is. When the limit of a name changes, the
// account is the next limit's with its first operation that is no peek: what was used stays used, in units, at most the new capacity. The
// units that are more than that are remembered for as long as they would have counted, and come back into the account when the
// limit is raised meanwhile: a limit that goes down and up again gives nothing away.
//
// The zero value is that of a key never seen.
type Account struct {
	Program *Program // whose state it is; nil of a key never seen
	State   []int64
	Extra   *Extra // nil of nearly all
}

// An Extra is what does not fit into a state. It is not changed once it is part of an account.
type Extra struct {
	Over, Until int64 // units that were more than the capacity when the limit was lowered; forgotten at Until
	Owed, Since int64 // units of a Commit for which there was no room; what could be paid until Since has been
	Holds       []Hold
}

// A Hold is a reservation that can be settled.
type Hold struct {
	ID      int64
	Units   int64
	At, End int64 // of the Take, and when the key would have been fresh after it
	Left    int64 // what remained after it
	Expires int64 // when nobody can settle it any more, and it is given back
}

// Apply carries out an operation of p on the account at now, and returns what it is then. It may change the state in place, not the Extra.
// Heal comes before, where there is something to heal.
func (a Account) Apply(p *Program, op Op, now int64) (Account, Result) {
	if op.Kind == Reset {
		state, r := p.Apply(a.State[:0], op, now)
		return Account{State: state}, r
	}
	if (a.Program == nil || a.Program == p || a.Program.limit == p.limit) && a.Extra == nil && op.Kind != Reserve && op.Kind != Commit {
		state, r := p.Apply(a.State, op, now)
		return of(p, state, nil), r
	}
	if op.Kind <= TakeUpTo && op.Cost == 0 { // a peek changes nothing
		view := a
		view.State = slices.Clone(a.State)
		_, r := view.settled(p, now).apply(op, now)
		return a, r
	}
	return a.settled(p, now).apply(op, now)
}

// of returns an account, which of a fresh key is the zero value.
func of(p *Program, state []int64, x *Extra) Account {
	if len(state) == 0 && x == nil {
		return Account{State: state}
	}
	return Account{Program: p, State: state, Extra: x}
}

// Plain reports whether the account is nothing but a state of p, or of a key never seen.
func (a Account) Plain(p *Program) bool {
	return a.Extra == nil && (a.Program == nil || a.Program == p || a.Program.limit == p.limit)
}

// Fresh reports whether nothing tells the account from that of a key never seen.
func (a Account) Fresh(now int64) bool { return a.Life(now) <= 0 }

// Life returns how long the account differs from that of a key never seen, from now on, in ticks.
func (a Account) Life(now int64) int64 {
	if a.Program == nil && a.Extra == nil {
		return 0
	}
	p := a.Program
	_, r := Account{p, slices.Clone(a.State), a.Extra}.settled(p, now).apply(Op{}, now)
	life := int64(r.ResetAfter) / p.tick
	if x := a.Extra; x != nil {
		if x.Over > 0 {
			life = max(life, x.Until-now)
		}
		for _, h := range x.Holds {
			life = max(life, h.Expires-now)
		}
	}
	return life
}

// Heal is [Program.Heal], by the limit whose state it is.
func (a Account) Heal(now int64) bool {
	return a.Program != nil && a.Program.Heal(a.State, now)
}

// Check is [Program.Check], by the limit whose state it is.
func (a Account) Check() error {
	if a.Program == nil {
		return nil
	}
	return a.Program.Check(a.State)
}

// settled returns the account as an account of p at now: reservations that are over have been given back, what is owed has been paid as far as there
// was room, and what was used is used under p.
func (a Account) settled(p *Program, now int64) Account {
	if a.Program == nil {
		a.Program = p
	}
	var x Extra
	if a.Extra != nil {
		x = *a.Extra
		x.Holds = slices.Clone(x.Holds)
	}
	for len(x.Holds) > 0 && x.Holds[0].Expires <= now { // the first to expire is first
		h := x.Holds[0]
		x.Holds = x.Holds[1:]
		a.State, x = a.Program.pay(a.State, x, h.Expires)
		a.State = a.Program.giveBack(a.State, h, h.Units, h.Expires)
	}
	a.State, x = a.Program.pay(a.State, x, now)
	if x.Until <= now {
		x.Over, x.Until = 0, 0
	}
	if a.Program != p && a.Program.limit != p.limit {
		u := a.Program.usedAt(a.State, now)
		var over, until int64
		a.State, over, until = p.inherit(u, x.Over, now)
		x.Over, x.Until = over, max(x.Until, until)
		x.Owed = min(x.Owed, p.mostOwed())
	}
	if x.Over == 0 {
		x.Until = 0
	}
	if x.Owed == 0 {
		x.Since = 0
	}
	a.Program, a.Extra = p, nil
	if x.Over > 0 || x.Owed > 0 || len(x.Holds) > 0 {
		a.Extra = &x
	}
	return a
}

// apply carries out an operation on an account that is settled, which it may change in place.
func (a Account) apply(op Op, now int64) (Account, Result) {
	p, x := a.Program, Extra{}
	if a.Extra != nil {
		x = *a.Extra
	}
	var r Result
	i := slices.IndexFunc(x.Holds, func(h Hold) bool { return h.ID == op.ID })
	switch {
	case op.Kind == Commit && i < 0, op.Kind == Reserve && i < 0 && len(x.Holds) >= MaxHolds:
		a.State, r = p.Apply(a.State, Op{}, now)
		r.Allowed, r.RetryAfter = false, Never
		if op.Kind == Reserve {
			r.RetryAfter = time.Duration(max(0, x.Holds[0].Expires-now) * p.tick)
		}
	case op.Kind == Commit:
		h := x.Holds[i]
		x.Holds = slices.Delete(x.Holds, i, i+1)
		a.State, x = p.commit(a.State, x, h, op.Cost, now)
		a.State, r = p.Apply(a.State, Op{}, now)
		r.Granted = op.Cost
	case op.Kind == Reserve && i >= 0: // somebody who had no answer asks again
		a.State, r = p.Apply(a.State, Op{}, now)
		r.Granted = x.Holds[i].Units
	case op.Kind == Reserve:
		a.State, r = p.Apply(a.State, Op{Cost: op.Cost}, now)
		if r.Allowed { // of cost 0 too: a cost that is known at the end only
			x.hold(Hold{
				ID: op.ID, Units: op.Cost, At: now, End: now + int64(r.ResetAfter)/p.tick, Left: r.Remaining, Expires: now + max(1, op.Life),
			})
		}
	case x.Owed > 0 && op.Kind == Refund:
		paid := min(op.Cost, x.Owed)
		x.Owed -= paid
		a.State, r = p.Apply(a.State, Op{Kind: Refund, Cost: op.Cost - paid}, now)
	default:
		a.State, r = p.Apply(a.State, op, now)
	}
	if x.Owed > 0 {
		p.delay(&r, a.State, x, op, now)
	}
	a = of(p, a.State, nil)
	if x.Over > 0 || x.Owed > 0 || len(x.Holds) > 0 {
		a.Program, a.Extra = p, &x
	}
	return a, r
}

// hold adds a reservation, in the order in which they expire.
func (x *Extra) hold(h Hold) {
	i, _ := slices.BinarySearchFunc(x.Holds, h.Expires, func(h Hold, expires int64) int {
		if h.Expires <= expires {
			return -1
		}
		return 1
	})
	x.Holds = slices.Insert(x.Holds, i, h)
}

// giveBack gives back units of a reservation, as far as the limit still holds them.
func (p *Program) giveBack(state []int64, h Hold, units, now int64) []int64 {
	taken := Decision{Allowed: true, Limit: p.capacity, Remaining: h.Left, ResetAfter: time.Duration((h.End - h.At) * p.tick)}
	back := p.limit.Outstanding(units, taken, time.Duration(max(0, now-h.At)*p.tick))
	if back <= 0 || len(state) == 0 {
		return state
	}
	if now <= h.At { // nothing has come back in no time
		return p.machine.refund(state, back, now)
	}
	state, _ = p.cancel(state, back, h.End, now)
	return state
}

// commit settles a reservation at what it cost.
func (p *Program) commit(state []int64, x Extra, h Hold, cost, now int64) ([]int64, Extra) {
	if cost <= h.Units {
		return p.giveBack(state, h, h.Units-cost, now), x
	}
	if x.Owed == 0 {
		x.Since = now
	}
	x.Owed = min(x.Owed+min(cost-h.Units, maxUnits-x.Owed), p.mostOwed())
	return p.pay(state, x, now)
}

func (p *Program) mostOwed() int64 {
	if p.capacity > maxUnits/maxOwed {
		return maxUnits
	}
	return maxOwed * p.capacity
}

// pay takes what is owed as soon as there was room for it, up to now.
func (p *Program) pay(state []int64, x Extra, now int64) ([]int64, Extra) {
	for t := x.Since; x.Owed > 0; {
		lump := min(x.Owed, p.capacity)
		var d Decision
		if state, d = p.machine.take(state, lump, t); d.Allowed {
			x.Owed -= lump
			continue
		}
		if wait := max(1, int64(d.RetryAfter)); t < now && wait <= now-t {
			t += wait
			continue
		}
		if now > t {
			t = now
		}
		if _, d = p.machine.take(state, 0, t); d.Remaining > 0 { // a part
			part := min(x.Owed, d.Remaining)
			state, _ = p.machine.take(state, part, t)
			x.Owed -= part
		}
		x.Since = t
		break
	}
	return state, x
}

// delay makes r the answer for a key that owes: nothing remains, and it waits until all is paid.
func (p *Program) delay(r *Result, state []int64, x Extra, op Op, now int64) {
	state, paid := slices.Clone(state), now
	cost := min(op.Cost, p.capacity)
	for t := now; x.Owed > 0; paid = t {
		lump := min(x.Owed, p.capacity)
		var d Decision
		if state, d = p.machine.take(state, lump, t); d.Allowed {
			x.Owed -= lump
		} else {
			t += max(1, int64(d.RetryAfter))
		}
	}
	_, after := p.Apply(slices.Clone(state), Op{Kind: Take, Cost: cost}, paid)
	_, fresh := p.Apply(state, Op{}, paid)
	owing := time.Duration((paid - now) * p.tick)
	r.Remaining, r.ResetAfter = 0, owing+fresh.ResetAfter
	if takes := op.Kind == Take || op.Kind == TakeUpTo || op.Kind == Reserve || op.Kind == Renew; takes && op.Cost > 0 {
		r.Allowed, r.Granted, r.Delay = false, 0, 0
		if op.Cost > p.capacity {
			r.RetryAfter = Never
		} else {
			r.RetryAfter = owing + after.RetryAfter
		}
	}
}
