package algorithm

import "time"

// Algorithm names a rate-limiting algorithm, as the limit text spells it.
//
// The comment above each constant defines it. They write q for Count, w for Period, T = w/q for the interval
// between units, b for the capacity, L for the length of any interval. Bounds are the most units
// admitted at a cost of 1 each; package bounds finds them by exhaustive search. Reaction is what a client that asks
// at a steady a times the limit (a > 1) gets from a fresh key before its first denial.
type Algorithm string

// A kind is the entry of an algorithm: how to compile its limits, and in what they differ from those of other algorithms.
type kind struct {
	name    Algorithm
	compile func(l Limit, capacity, tick int64) (machine, error)
	option  string // burst, queue, cells or strict; "" if it takes none
	linear  bool   // of the linear family
	counts  bool   // a state means the same under every count
	most    int64  // the largest Count; 0: no bound
	reason  string // for most
	// outstanding is [Limit.Outstanding] before the units are fresh; nil: all units.
	outstanding func(l Limit, cost int64, d Decision, elapsed time.Duration) int64
}

// kinds has every algorithm, in the order of the documentation. Names of one algorithm are entries with the same compile.
var kinds = []kind{
	{name: TokenBucket, compile: newBucket, option: "burst", linear: true},
	{name: GCRA, compile: newBucket, option: "burst", linear: true},
	{name: LeakyBucket, compile: newBucket, option: "burst", linear: true},
	{name: LeakyQueue, compile: newQueue, option: "queue", linear: true},
	{name: Cooldown, compile: newBucket, linear: true},
	{name: MinInterval, compile: newBucket, linear: true},
	{name: RefillBucket, compile: compiled(newRefillBucket), option: "burst", outstanding: refillOutstanding},
	{name: FixedWindow, compile: compiled(newFixedWindow), counts: true},
	{name: QuotaReset, compile: compiled(newQuotaReset), counts: true},
	{name: SlidingLog, compile: compiled(newSlidingLog), counts: true, most: MaxLogCount, reason: ", which keeps an entry for each request"},
	{name: SlidingWindow, compile: compiled(newSlidingWindow), counts: true},
	{name: SlidingBuckets, compile: compiled(newSlidingBuckets), option: "cells", counts: true},
	{name: Hybrid, compile: compiled(newHybrid)},
	{
		name: Exponential, compile: compiled(newExponential), option: "strict", counts: true, most: MaxRateCount,
		outstanding: exponentialOutstanding,
	},
	{name: Calendar, compile: compiled(newCalendar), counts: true},
	{name: Concurrent, compile: compiled(newConcurrent), counts: true, most: MaxLogCount, reason: ", which keeps an entry for each request"},
}

var kindByName = func() map[Algorithm]*kind {
	byName := make(map[Algorithm]*kind, len(kinds))
	for i := range kinds {
		byName[kinds[i].name] = &kinds[i]
	}
	return byName
}()

// kind returns the entry of a known algorithm, otherwise an empty one.
func (a Algorithm) kind() *kind {
	if k := kindByName[a]; k != nil {
		return k
	}
	return &kind{}
}

// compiled adapts the constructor of a machine.
func compiled[M machine](build func(l Limit, tick int64) (M, error)) func(Limit, int64, int64) (machine, error) {
	return func(l Limit, _, tick int64) (machine, error) { return build(l, tick) }
}

// All lists every algorithm, in the order in which the documentation presents them.
func All() []Algorithm {
	all := make([]Algorithm, 0, len(kinds))
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// Linear reports whether the algorithm is of the linear family, whose state is a theoretical arrival time.
func (a Algorithm) Linear() bool { return a == "" || a.kind().linear }
