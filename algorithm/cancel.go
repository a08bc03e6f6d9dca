package algorithm

import "time"

// Outstanding returns how many of the cost units that were taken with decision d, elapsed ago, a Cancel may give back
// without more being admitted than the limit says. The rest has come back by itself, or, under exponential, can't be told.
// Algorithms whose units come back in parts, or that know which units were taken when, leave the rest to the Cancel.
func (l Limit) Outstanding(cost int64, d Decision, elapsed time.Duration) int64 {
	left := d.ResetAfter - elapsed
	if !d.Allowed || left <= 0 {
		return 0
	}
	switch l = l.Canonical(); l.Algorithm {
	case RefillBucket:
		// As if the tokens that were missing longest had come first.
		missing := d.Limit - d.Remaining // when these were taken
		come := refillBucket{amount: l.Count}.refills(missing) - (int64(left-1)/int64(l.Period) + 1)
		return max(0, min(cost, missing-max(0, come)*l.Count))
	case Exponential:
		if elapsed > 0 { // what they weigh by now, and what came after them weighs because of them, is not known
			return 0
		}
	}
	return cost
}

// cancel gives back units that were taken when the key would have been fresh at end, and says how many: all, unless a
// part of them has come back by itself.
func (p *Program) cancel(state []int64, cost, end, now int64) (_ []int64, back int64) {
	if m, ok := p.machine.(canceler); ok {
		return m.cancel(state, cost, end, now)
	}
	return p.machine.refund(state, cost, now), cost
}

// A canceler is a machine that knows which of its units were taken when.
type canceler interface {
	cancel(state []int64, cost, end, now int64) (_ []int64, back int64)
}

// cancels reports whether the limit of a record can cancel units that were taken under q. It can't where the state does not have the
// time at which units were taken: they may have come back under the record's limit.
func (p *Program) cancels(q *Program) bool {
	_, ok := p.machine.(canceler)
	return ok || p.is(q) || p.countsAs(q)
}

// cancel gives back what is not paid of the units. end was rounded up, so that where times have fractions up to a tick of
// it is taken off.
func (m linear) cancel(state []int64, cost, end, now int64) ([]int64, int64) {
	debt := m.debt(state, now)
	if debt == (instant{}) || m.queue && now+int64(ceil(debt)) != end {
		return state, 0 // all has come back; or somebody came after, and has a time to leave
	}
	if m.queue {
		return m.refund(state, cost, now), cost
	}
	left := instant{ticks: end - now}
	if m.unit > 1 {
		left.ticks--
	}
	back := m.times(min(cost, m.units(m.depth)))
	if m.less(left, back) {
		back = left
	}
	if back.ticks < 0 {
		return state, 0
	}
	return m.giveBack(state, debt, back, now), cost
}

func (m hybrid) cancel(state []int64, cost, end, now int64) ([]int64, int64) {
	switch {
	case m.fresh(state, now):
		return state[:0], 0
	case state[0] == smooth:
		_, back := m.linear.cancel(state[1:], cost, end, now) // in place
		return state, back
	case state[1]+m.width != end:
		return state, 0 // taken in another window
	}
	return m.refund(state, cost, now), cost
}

func (m slidingLog) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	for i := 0; i < len(state); i += 2 {
		if state[i] != end-m.width {
			continue
		}
		if state[i+1] -= min(cost, state[i+1]); state[i+1] == 0 {
			state = append(state[:i], state[i+2:]...)
		}
		return state, cost
	}
	return state, 0
}

func (m slidingWindow) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	switch state[0] - (floorDiv(end, m.width) - 2) {
	case 0: // taken in the current window
		state[2] -= min(cost, state[2])
	case 1: // in the previous
		state[1] -= min(cost, state[1])
	default:
		return state, 0
	}
	if state[1] == 0 && state[2] == 0 {
		state = state[:0]
	}
	return state, cost
}

func (m slidingBuckets) cancel(state []int64, cost, end, _ int64) ([]int64, int64) {
	i := m.cell(end) - m.cells - 1
	if i > state[0] || i < state[0]-m.cells {
		return state, 0
	}
	state[m.slot(i)] -= min(cost, state[m.slot(i)])
	return state, cost
}
