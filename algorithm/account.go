package algorithm

import (
	"slices"
	"time"
)

// An Account is the stored record of one key of a named limiter: its state, and the limit that produced it.
// The limit of a name may change while the record stays; see [Account.Apply].
//
// The zero value is the account of a key never seen.
type Account struct { //nolint:recvcheck // an account is a value; only Heal has to change one
	Program *Program // whose state it is; nil of a key never seen
	State   []int64
	Extra   *Extra // nil of nearly all
}

// An Extra is what an account has besides its state. It is not changed once it is part of an account.
type Extra struct {
	Holds       []Hold // in the order in which they expire
	Owed, Since int64  // units of a Commit for which there was no room, and the time up to which they were paid
	Lease       int64  // ticks of the longest lease in the state, if longer than those of the limit; otherwise 0

	previous []previous // of a record of an earlier layout; see Account.settled
}

// Apply carries out an operation of p on the account at now, and returns the account after it. It may change the state in place.
// The account's program and p must be of the same ticks. The head of change.go states what holds if their limits differ.
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
		return a, view.open(p, now).do(p, op, now)
	}
	o := a.open(p, now)
	r := o.do(p, op, now)
	return of(o.p, o.state, o.Extra), r
}

// of returns an account, which is the zero value if it equals that of a key never seen.
func of(p *Program, state []int64, x Extra) Account {
	switch {
	case len(x.Holds) > 0 || x.Owed > 0 || x.Lease > 0:
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

// Fresh reports whether the account equals that of a key never seen.
func (a Account) Fresh(now int64) bool { return a.Life(now) <= 0 }

// Life returns how long the account may differ from that of a key never seen if there are no more operations, in ticks from now on. It is exact
// for accounts of which nothing is reserved or owed.
func (a Account) Life(now int64) int64 {
	if a.Program == nil {
		return 0
	}
	a.State = slices.Clone(a.State)
	o := a.open(a.Program, now)
	life := int64(o.peek(o.p, now).ResetAfter) / o.p.tick
	if n := len(o.Holds); n > 0 {
		life = max(life, o.Holds[n-1].Expires-now)
	}
	return life
}

// Heal is [Program.Heal], of the account's state, reservations and debt. It may change the state in place.
func (a *Account) Heal(now int64) bool {
	switch {
	case a.Program == nil:
		return false
	case a.Extra == nil:
		return a.Program.Heal(a.State, now)
	}
	*a = a.settled(now)
	x := *a.Extra
	healed := x.Owed > 0 && x.Since > now
	if healed {
		x.Since = now
	}
	x.Holds = slices.Clone(x.Holds)
	for i := range x.Holds {
		if h := &x.Holds[i]; h.At > now {
			back := h.At - now
			h.At, h.End, h.Expires, healed = now, h.End-back, h.Expires-back, true
		}
	}
	if healed {
		slices.SortStableFunc(x.Holds, Hold.before)
		a.Extra = &x
	}
	if m, ok := a.Program.machine.(concurrent); ok && m.endsWithin(a.State, 2*x.Lease, now) {
		return healed
	}
	return a.Program.Heal(a.State, now) || healed
}

// Check is [Program.Check] of the account's state.
func (a Account) Check() error {
	if a.Program == nil {
		return nil
	}
	return a.Program.Check(a.State)
}

// View returns a copy of the state that p finds in the account at now, for programs that plan. What is reserved is used in it, and so is
// what is owed, as far as there is room for it.
func (a Account) View(p *Program, now int64) []int64 {
	a.State = slices.Clone(a.State)
	if a.Plain(p) {
		return a.State
	}
	o := a.open(p, now)
	o.convert(p, now)
	return o.state
}

// opened is an account during an operation. Except for the state, which may be changed in place, it shares nothing with the account.
type opened struct {
	p     *Program // whose state it is
	state []int64
	Extra
}

// open returns the account at now: expired reservations are given back, and debt is paid as far as there was room. p is the limit of
// a key never seen.
func (a Account) open(p *Program, now int64) *opened {
	o := &opened{p: p, state: a.State}
	if a.Extra != nil {
		a = a.settled(now)
		o.state, o.Extra = a.State, *a.Extra
		o.Holds = slices.Clone(o.Holds)
	}
	if a.Program != nil {
		o.p = a.Program
	}
	for len(o.Holds) > 0 && o.Holds[0].Expires <= now {
		h := o.Holds[0]
		o.Holds = o.Holds[1:]
		o.pay(h.Expires)
		o.giveBack(h, h.Units, h.Expires)
	}
	o.pay(now)
	o.limitLease(now)
	return o
}

// do carries out an operation of p that is no Reset.
func (o *opened) do(p *Program, op Op, now int64) (r Result) {
	switch op.Kind {
	case Reserve:
		return o.reserve(p, op, now)
	case Commit:
		return o.commit(p, op, now)
	case Renew:
		return o.renew(p, op, now)
	case Refund, Cancel:
		if op.Kind == Cancel {
			if op.End = o.p.end(p, op.End, now); !o.p.cancels(p) {
				op.Cost = 0
			}
		}
		o.state, r = o.p.Apply(o.state, op, now)
		o.pay(now)
		r.Decision = o.peek(p, now)
		return r
	}
	return o.take(p, op, now)
}

// peek is the decision on a request of p that costs nothing.
func (o *opened) peek(p *Program, now int64) Decision {
	return o.take(p, Op{}, now).Decision
}

// duration is ticks as time.
func (p *Program) duration(ticks int64) time.Duration { return time.Duration(ticks * p.tick) }

// left is how long a state differs from that of a key never seen, in ticks.
func (p *Program) left(state []int64, now int64) int64 {
	if len(state) == 0 {
		return 0
	}
	_, d := p.machine.take(state, 0, now)
	return max(0, int64(d.ResetAfter))
}
