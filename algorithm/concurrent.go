package algorithm

import "slices"

// concurrent is a log of leases, each of which can be given back by its end. A lease taken under
// a limit of a different length keeps its end. A new lease never ends before the others.
//
// State: pairs of (end of the lease less the width, units), earliest first.
type concurrent struct{ slidingLog }

func newConcurrent(l Limit, tick int64) (concurrent, error) {
	log, err := newSlidingLog(l, tick)
	return concurrent{log}, err
}

// renew carries out a Renew.
func (p *Program) renew(state []int64, op Op, now int64) ([]int64, Decision) {
	if op.Cost > 0 && op.Cost <= p.capacity {
		state, _ = p.cancel(state, op.Cost, op.End, now)
	}
	return p.take(state, op.Cost, now)
}

// leases reports whether what is taken has leases.
func (p *Program) leases() bool {
	_, ok := p.machine.(concurrent)
	return ok
}

// chargeUntil charges units that a limit of leases of a different length admitted until end. If
// there is no room, the leases that end first are dropped.
func (m concurrent) chargeUntil(state []int64, cost, end, now int64) (_ []int64, charged int64) {
	live := slices.Clone(m.live(state, now))
	room := m.count - units(live)
	i := 0
	for i < len(live) && live[i] < end-m.width {
		i += 2
	}
	if i < len(live) && live[i] == end-m.width {
		live[i+1] += cost
	} else {
		live = slices.Insert(live, i, end-m.width, cost)
	}
	return m.newest(live, m.count), min(cost, room)
}

// longestLease returns the index and the length of the longest leases among the states, or -1 and
// 0 if there are no leases.
func longestLease(states []Former) (index int, length int64) {
	index = -1
	for i, f := range states {
		if m, ok := f.Program.machine.(concurrent); ok && m.width > length {
			index, length = i, m.width
		}
	}
	return index, length
}

// healLeases is Heal for a state that may have leases of the formers' lengths.
func (p *Program) healLeases(state []int64, formers []Former, now int64) bool {
	if m, ok := p.machine.(concurrent); ok && len(state) > 0 {
		if _, longest := longestLease(formers); state[len(state)-2]+m.width <= now+2*longest {
			return false
		}
	}
	return p.Heal(state, now)
}
