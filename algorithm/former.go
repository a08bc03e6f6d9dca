package algorithm

import (
	"math"
	"slices"
)

// Bounds on the formers of an account.
const (
	// MaxFormers is how many limits an account remembers besides the one that it is of.
	MaxFormers = 3
	// maxFormerLog is how many entries of a log a former has; older ones are joined.
	maxFormerLog = 64
	// maxFormerLeases is maxFormerLog for leases: the holders of joined ones find them no more.
	maxFormerLeases = 1024
)

// A Former is the state of a limit that was in force before and may be again. It is charged with all that other limits admit, and is forgotten when
// it has not been in force for as long as all its units take to come back.
type Former struct {
	Program *Program
	State   []int64
	Missed  int64 // units that it had no room for: what is given back is first taken off these
	Until   int64 // when it is forgotten
}

func cloneFormers(formers []Former) []Former {
	formers = slices.Clone(formers)
	for i := range formers {
		formers[i].State = slices.Clone(formers[i].State)
	}
	return formers
}

// become makes the account one of p: the former that p has, or a state in which as much is used as in the one in which most is.
func (o *opened) become(p *Program, now int64) {
	leaving := Former{Program: o.p, State: o.state, Missed: o.missed(now), Until: now + o.p.memory(o.state, now)}
	states := append([]Former{leaving}, o.Formers...)
	mine := slices.IndexFunc(states, func(f Former) bool { return f.Program.is(p) })
	source, units := mostUsed(states, now)
	if n := leaving.used(now); mine >= 0 && p.leases() && o.p.leases() && n >= states[mine].used(now) {
		states = slices.Delete(states, mine, mine+1) // the state in force has every end
		source, units, mine = 0, n, -1
	}
	switch {
	case mine >= 0:
		o.state = states[mine].State
		states = slices.Delete(states, mine, mine+1)
	case units == 0:
		o.state = nil
	default:
		from := states[source]
		o.state = p.machine.inherit(used{min(units, p.capacity), from.Program.machine, from.State}, now)
	}
	o.Formers = keep(slices.DeleteFunc(states, func(f Former) bool { return p.covers(o.state, f, now) }), now)
	end := now + p.left(o.state, now)
	for i := range o.Holds {
		o.Holds[i].End = min(o.Holds[i].End, end)
	}
}

// memory is how long a limit that goes out of force is remembered: as long as all its units, and those that are used, take to come back. Of limits that
// are used side by side each then knows what has come back under it; it is not told anew by another each time that it is fresh.
func (p *Program) memory(state []int64, now int64) int64 {
	_, full := p.machine.take(nil, p.capacity, now)
	return max(int64(full.ResetAfter), p.left(state, now))
}

// missed is how many units were used under a former with more capacity that the limit in force had no room for: what is given back is first taken off these.
func (o *opened) missed(now int64) (units int64) {
	for _, f := range o.Formers {
		if f.Program.capacity > o.p.capacity {
			_, d := f.Program.machine.take(f.State, 0, now)
			units = max(units, f.Program.capacity-d.Remaining-o.p.capacity)
		}
	}
	return units
}

// mostUsed returns the state in which most units are used, and how many.
func mostUsed(states []Former, now int64) (index int, units int64) {
	for i, f := range states {
		if n := f.used(now); n > units {
			index, units = i, n
		}
	}
	return index, units
}

// used returns how many units are used.
func (f *Former) used(now int64) int64 {
	_, d := f.Program.machine.take(f.State, 0, now)
	return f.Program.capacity - d.Remaining
}

// remembered drops the formers that are forgotten at now.
func remembered(formers []Former, now int64) []Former {
	return slices.DeleteFunc(formers, func(f Former) bool { return f.Until <= now })
}

// keep returns the states that are worth remembering. If they are too many, those are the latest, but always the one in which most is used, and the one
// of the longest leases.
func keep(states []Former, now int64) []Former {
	states = remembered(states, now)
	for len(states) > MaxFormers {
		last := len(states) - 1
		most, _ := mostUsed(states, now)
		longest, _ := longestLease(states)
		for last == most || last == longest {
			last--
		}
		states = slices.Delete(states, last, last+1)
	}
	for i, f := range states {
		if m, ok := asLog(f.Program.machine); ok {
			most := maxFormerLog
			if f.Program.leases() {
				most = maxFormerLeases
			}
			states[i].State = joined(m.live(f.State, now), most)
		}
	}
	return states
}

// joined returns a log of more than most entries with its oldest ones as one entry, which is as
// late as the latest of them.
func joined(log []int64, most int) []int64 {
	if extra := len(log) - 2*most; extra > 0 {
		sum := units(log[:extra])
		log = slices.Clone(log[extra:])
		log[1] += sum
	}
	return log
}

// charge charges the formers with units that were admitted.
func (o *opened) charge(units, now int64) {
	if units <= 0 {
		return
	}
	end := now + o.p.left(o.state, now)
	for i := range o.Formers {
		f := &o.Formers[i]
		var charged int64
		if m, ok := f.Program.machine.(concurrent); ok && o.p.leases() {
			f.State, charged = m.chargeUntil(f.State, units, end, now)
		} else {
			f.State, charged = f.Program.charge(f.State, units, now)
		}
		f.Missed = plus(f.Missed, units-charged)
	}
}

// plus adds units, at most as many as there are.
func plus(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// giveBackFormers gives back what a Refund or Cancel does.
func (o *opened) giveBackFormers(op Op, now int64) {
	for i := range o.Formers {
		switch f := &o.Formers[i]; {
		case op.Kind == Cancel:
			f.cancel(op.Cost, op.End, now)
		case len(f.State) > 0:
			if back := f.unmiss(op.Cost); back > 0 {
				f.State = f.Program.machine.refund(f.State, back, now)
			}
		}
	}
}

// cancel gives back units that were taken under a limit, perhaps another, under which the key would have been fresh at end. Where it can't be told
// how much of them has come back by itself, it is nothing.
func (f *Former) cancel(units, end, now int64) {
	m, ok := f.Program.machine.(canceler)
	if !ok || len(f.State) == 0 {
		return
	}
	if units = f.unmiss(units); units > 0 {
		f.State, _ = m.cancel(f.State, units, end, now)
	}
}

// unmiss takes units off those that were missed, and returns how many are left.
func (f *Former) unmiss(units int64) int64 {
	off := min(units, f.Missed)
	f.Missed -= off
	return units - off
}

// charge takes units that another limit admitted, as many as there is room for, and says how many that was. What room there is for a
// part of a unit is taken too, so that it does not add up.
func (p *Program) charge(state []int64, units, now int64) (_ []int64, charged int64) {
	if m, ok := p.machine.(interface {
		charge(state []int64, units, now int64) ([]int64, int64)
	}); ok {
		return m.charge(state, units, now)
	}
	_, d := p.machine.take(state, 0, now)
	charged = min(units, d.Remaining)
	if charged > 0 {
		state, _ = p.machine.take(state, charged, now)
	}
	return state, charged
}

func (m linear) charge(state []int64, units, now int64) ([]int64, int64) {
	debt := m.debt(state, now)
	if !m.less(debt, m.depth) {
		return state, 0
	}
	room := m.minus(m.depth, debt)
	charged := min(units, m.units(room))
	added := room
	if units <= m.units(m.depth) && m.less(m.times(units), room) {
		added = m.times(units)
	}
	debt = m.plus(debt, added)
	return m.store(state, instant{now + debt.ticks, debt.rem}), charged
}

func (m hybrid) charge(state []int64, units, now int64) ([]int64, int64) {
	if !m.fresh(state, now) && state[0] == smooth {
		_, charged := m.linear.charge(state[1:], units, now) // in place
		return state, charged
	}
	_, d := m.take(state, 0, now)
	charged := min(units, d.Remaining)
	if charged > 0 {
		state, _ = m.take(state, charged, now)
	}
	return state, charged
}

// charge makes room by forgetting the oldest: if as many newer ones fill the window, they say as much.
func (m slidingLog) charge(state []int64, cost, now int64) ([]int64, int64) {
	live := m.live(state, now)
	room := m.count - units(live)
	return m.newest(m.add(slices.Clone(live), min(cost, m.count), now), m.count), min(cost, room)
}

func (m slidingBuckets) charge(state []int64, units, now int64) ([]int64, int64) {
	newest, sum := m.used(state, now)
	charged := min(units, m.count-sum)
	units = min(units, m.count)
	state = m.advance(state, newest)
	for i, excess := newest-m.cells, units-charged; excess > 0; i++ {
		off := min(excess, state[m.slot(i)])
		state[m.slot(i)] -= off
		excess -= off
	}
	state[m.slot(newest)] += units
	return state, charged
}

// charge counts a unit as a whole one where there is room for a part of one.
func (m slidingWindow) charge(state []int64, units, now int64) ([]int64, int64) {
	index, previous, current, elapsed := m.at(state, now)
	room := max(0, m.count-current-m.weighted(previous, elapsed))
	current += min(units, m.count-current)
	return append(state[:0], index, previous, current), min(units, room)
}

func (m exponential) charge(state []int64, units, now int64) ([]int64, int64) {
	rate, elapsed := m.at(state, now)
	old := m.next(rate, elapsed, 0)
	if old >= m.limit {
		return state, 0
	}
	charged := min(units, m.remaining(rate, elapsed))
	next := max(old, min(m.next(rate, elapsed, float64(units)), m.limit))
	return append(state[:0], now+m.lead(state, now), int64(math.Float64bits(next))), charged
}
