package postgres

import (
	"slices"

	"github.com/weirlimit/weir/algorithm"
)

// A take is a Take that one statement can carry out.
type take struct {
	steps *steps
	args  []any // of the statement, from $4 on
	// before returns a state from which the cost leads to the one given, at the time at which it did: the state that the
	// statement found, or one that was worth the same then. So Program explains what the engine has decided.
	before func(after []int64) []int64
}

// takeOf returns the take of a cost above 0 and at most the capacity, at about now. ok is false for algorithms that no statement knows.
func takeOf(p *algorithm.Program, cost, now int64) (t take, ok bool) {
	if i, ok := p.Interval(); ok {
		return linearTake(i, p.Limit().Capacity(), cost), true
	}
	l := p.Limit()
	width := int64(l.Period / p.Tick())
	switch l.Algorithm {
	case algorithm.FixedWindow:
		return take{&fixedWindow, []any{cost, l.Count, width}, without(1, cost)}, true
	case algorithm.QuotaReset:
		return take{&quotaReset, []any{cost, l.Count, width}, without(1, cost)}, true
	case algorithm.RefillBucket:
		return take{&refillBucket, []any{cost, l.Count, width, l.Burst}, without(1, cost)}, true
	case algorithm.SlidingWindow:
		return take{&slidingWindow, []any{cost, l.Count, width}, without(2, cost)}, true
	case algorithm.Calendar:
		return take{&calendar, []any{cost, l.Count, p.Windows(now)}, without(1, cost)}, true
	}
	return take{}, false
}

func linearTake(i algorithm.Interval, capacity, cost int64) take {
	charge := i.Times(cost)
	most := i.Minus(i.Times(capacity), charge) // the largest debt that leaves room
	if i.Unit == 1 {
		return take{&linearTicks, []any{charge.Ticks, most.Ticks}, without(0, charge.Ticks)}
	}
	return take{&linearParts, []any{charge.Ticks, charge.Rem, most.Ticks, most.Rem, i.Unit}, func(after []int64) []int64 {
		was := i.Minus(algorithm.Span{Ticks: after[0], Rem: after[1]}, charge)
		return []int64{was.Ticks, was.Rem}
	}}
}

// without takes units off the word in which they are counted.
func without(word int, units int64) func([]int64) []int64 {
	return func(after []int64) []int64 {
		was := slices.Clone(after)
		was[word] -= units
		return was
	}
}
