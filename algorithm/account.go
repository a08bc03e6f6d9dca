package algorithm

import (
	"slices"
	"time"
)

// An Account is what is kept of a key under a name: the state, and whose it is. The limit of a name may change. What was used stays used
// then: the first operation of another limit that is no peek makes a state for it in which as many units are used as in the
// state before, at most the limit's capacity.
//
// The states of limits that were in force lately stay in the account, as its formers, and are charged with everything that is admitted. So a limit that comes
// back finds what it would have found if it had been in force all along: raising and lowering gives nothing away, and where
// several versions of a limit are used side by side, as while a change spreads, each of them is kept.
//
// The zero value is the account of a key never seen.
type Account struct { //nolint:recvcheck // an account is a value; only Heal has to change one
	Program *Program // whose state it is; nil of a key never seen
	State   []int64
	Extra   *Extra // nil of nearly all
}

// An Extra is what an account has besides its state. It is not changed once it is part of an account.
type Extra struct {
	Formers     []Former // latest first
	Holds       []Hold   // in the order in which they expire
	Owed, Since int64    // units of a Commit for which there was no room, and when the state was last looked at for room
}

// Apply carries out an operation of p on the account at now, and returns what the account is then. It may change the state in place. The account's
// program and p must be of the same ticks.
func (a Account) Apply(p *Program, op Op, now int64) (Account, Result) {
	switch {
	case op.Kind == Reset:
		state, r := p.Apply(a.State, op, now)
		return Account{State: state}, r
	case a.Plain(p) && op.Kind != Reserve && op.Kind != Commit:
		state, r := p.Apply(a.State, op, now)
		return of(p, state, Extra{}), r
	case op.Cost == 0 && op.Kind != Reserve && op.Kind != Commit: // a peek changes nothing
		view := a
		view.State = slices.Clone(a.State)
		return a, view.open(p, now).do(op, now)
	}
	o := a.open(p, now)
	r := o.do(op, now)
	return of(p, o.state, o.Extra), r
}

// of returns an account, which is the zero value if it says nothing.
func of(p *Program, state []int64, x Extra) Account {
	switch {
	case len(x.Formers) > 0 || len(x.Holds) > 0 || x.Owed > 0:
		kept := x // x itself would be on the heap for every account
		return Account{p, state, &kept}
	case len(state) == 0:
		return Account{State: state}
	}
	return Account{Program: p, State: state}
}

// Plain reports whether the account is nothing but a state of p, or of a key never seen.
func (a Account) Plain(p *Program) bool {
	return a.Extra == nil && (a.Program == nil || a.Program.is(p))
}

func (p *Program) is(q *Program) bool { return p == q || p.limit == q.limit }

// Fresh reports whether nothing tells the account from that of a key never seen.
func (a Account) Fresh(now int64) bool { return a.Life(now) <= 0 }

// Life returns how long the account may differ from that of a key never seen if there are no more operations, in ticks from now on. It is exact
// for accounts of which nothing is reserved or owed.
func (a Account) Life(now int64) int64 {
	if a.Program == nil {
		return 0
	}
	a.State = slices.Clone(a.State)
	o := a.open(a.Program, now)
	life := int64(o.do(Op{}, now).ResetAfter) / o.p.tick
	for _, f := range o.Formers {
		differs := f.Until - now
		if o.Owed == 0 && len(o.Holds) == 0 {
			differs = min(differs, f.Program.left(f.State, now))
		}
		life = max(life, differs)
	}
	for _, h := range o.Holds {
		life = max(life, h.Expires-now)
	}
	return life
}

// left is how long a state differs from none, in ticks.
func (p *Program) left(state []int64, now int64) int64 {
	if len(state) == 0 {
		return 0
	}
	_, d := p.machine.take(state, 0, now)
	return max(0, int64(d.ResetAfter))
}

// Heal is [Program.Heal], of all that the account has. It may change the state in place.
func (a *Account) Heal(now int64) bool {
	if a.Program == nil {
		return false
	}
	if a.Extra == nil {
		return a.Program.Heal(a.State, now)
	}
	lengths := append(slices.Clone(a.Extra.Formers), Former{Program: a.Program})
	healed := a.Program.healLeases(a.State, lengths, now)
	if x, other := a.Extra.healed(lengths, now); other {
		a.Extra, healed = &x, true
	}
	return healed
}

// healed returns an Extra without times that are ahead of now. lengths are all limits, for the
// lengths of their leases.
func (x Extra) healed(lengths []Former, now int64) (_ Extra, healed bool) {
	x.Formers, x.Holds = cloneFormers(x.Formers), slices.Clone(x.Holds)
	for i := range x.Formers {
		f := &x.Formers[i]
		if f.Program.healLeases(f.State, lengths, now) {
			f.Until, healed = min(f.Until, now+f.Program.left(f.State, now)), true
		}
	}
	if x.Owed > 0 && x.Since > now {
		x.Since, healed = now, true
	}
	for i := range x.Holds {
		if h := &x.Holds[i]; h.At > now {
			back := h.At - now
			h.At, h.End, h.Expires, healed = now, h.End-back, h.Expires-back, true
		}
	}
	slices.SortStableFunc(x.Holds, Hold.before)
	return x, healed
}

// Check is [Program.Check], of all states that the account has.
func (a Account) Check() error {
	if a.Program == nil {
		return nil
	}
	if a.Extra != nil {
		for _, f := range a.Extra.Formers {
			if err := f.Program.Check(f.State); err != nil {
				return err
			}
		}
	}
	return a.Program.Check(a.State)
}

// opened is an account that is being worked on. But for the state, which may be changed in place, it shares nothing with the account.
type opened struct {
	p     *Program
	state []int64
	Extra
}

// open returns the account as one of p at now: reservations that are over have been given back, what is owed has been paid as far as there
// was room, and what was used is used under p.
func (a Account) open(p *Program, now int64) *opened {
	o := &opened{p: p, state: a.State}
	if a.Program != nil {
		o.p = a.Program
	}
	if x := a.Extra; x != nil {
		o.Extra = Extra{cloneFormers(x.Formers), slices.Clone(x.Holds), x.Owed, x.Since}
	}
	for len(o.Holds) > 0 && o.Holds[0].Expires <= now {
		h := o.Holds[0]
		o.Holds = o.Holds[1:]
		o.pay(h.Expires)
		o.giveBack(h, h.Units, h.Expires)
	}
	o.pay(now)
	o.forget(now)
	if !o.p.is(p) {
		o.become(p, now)
		o.p = p
		o.forgive(now)
		o.pay(now)
	}
	o.p = p
	return o
}

// forget drops formers that are forgotten, and all if nothing is used under any limit.
func (o *opened) forget(now int64) {
	o.Formers = remembered(o.Formers, now)
	used := func(f Former) bool { return f.Program.left(f.State, now) > 0 }
	if len(o.Holds) == 0 && o.Owed == 0 && o.p.left(o.state, now) == 0 && !slices.ContainsFunc(o.Formers, used) {
		o.Formers = nil
	}
}

// do carries out an operation that is no Reset.
func (o *opened) do(op Op, now int64) (r Result) {
	owing := o.Owed > 0
	switch op.Kind {
	case Reserve:
		return o.reserve(op, now)
	case Commit:
		return o.commit(op, now)
	case Refund, Cancel:
		own := op
		own.Cost -= min(op.Cost, o.missed(now))
		o.state, r = o.p.Apply(o.state, own, now)
		o.giveBackFormers(op, now)
	case Renew:
		if o.state, r = o.p.Apply(o.state, op, now); r.Allowed && r.Granted > 0 {
			o.giveBackFormers(Op{Kind: Cancel, Cost: r.Granted, End: op.End}, now)
			o.charge(r.Granted, now)
		}
	default:
		if owing { // what is owed comes first
			return o.refuse(op, now)
		}
		o.state, r = o.p.Apply(o.state, op, now)
		o.charge(r.Granted, now)
	}
	if owing {
		o.pay(now) // with what was given back
		stands := o.peek(now)
		if r.Allowed {
			r.Decision = stands
		} else { // a Renew
			r = o.refuse(op, now)
			r.Remaining = stands.Remaining
		}
	}
	return r
}

// peek is what stands for the key.
func (o *opened) peek(now int64) Decision {
	if o.Owed > 0 {
		return o.refuse(Op{}, now).Decision
	}
	_, r := o.p.Apply(o.state, Op{}, now)
	return r.Decision
}

// duration is ticks as time.
func (p *Program) duration(ticks int64) time.Duration { return time.Duration(ticks * p.tick) }
