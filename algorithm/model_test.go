package algorithm_test

import (
	"math/big"

	"github.com/weirlimit/weir/algorithm"
)

// A model is an algorithm's definition spelled out the slow way: exact rationals or a journal of everything admitted,
// and a search instead of a formula wherever the program has a formula. The properties ask both the same questions.
type model interface {
	// fits says whether a request of this cost, 1 or more, would pass at now. It changes nothing.
	fits(now, cost int64) answer
	// admit records a request that passed at now.
	admit(now, cost int64)
	// fresh says whether the key at now is like one never seen.
	fresh(now int64) answer
}

// A hardened model counts denied requests too.
type hardened interface {
	deny(now, cost int64)
}

// A queue is a model whose admitted requests wait for their turn.
type queue interface {
	delay(now int64) *big.Rat // nanoseconds
}

// An answer is yes or no, or either where the model computes in floating point and the question is on the edge.
type answer int

const (
	no answer = iota
	yes
	either
)

func is(b bool) answer {
	if b {
		return yes
	}
	return no
}

// allows reports whether got is a right answer.
func (a answer) allows(got bool) bool { return a == either || (a == yes) == got }

// newModel builds the model of a limit that compiles.
func newModel(l algorithm.Limit) model {
	l = l.Canonical()
	interval := new(big.Rat).SetFrac64(int64(l.Period), l.Count)
	capacity := rat(l.Capacity())
	switch l.Algorithm {
	case algorithm.TokenBucket:
		return &tokenBucket{capacity: capacity, rate: new(big.Rat).Inv(interval)}
	case algorithm.LeakyBucket:
		return &leakyBucket{capacity: capacity, rate: new(big.Rat).Inv(interval)}
	case algorithm.GCRA:
		return &virtualScheduling{interval: interval, tolerance: mul(sub(capacity, rat(1)), interval)}
	case algorithm.Cooldown:
		return &score{interval: interval, ceiling: rat(int64(l.Period))}
	case algorithm.MinInterval:
		return &spacing{interval: interval}
	case algorithm.LeakyQueue:
		return &shaper{interval: interval, longest: mul(rat(l.Queue), interval)}
	case algorithm.Hybrid:
		return &finch{quota: rat(l.Count), window: rat(int64(l.Period))}
	case algorithm.Exponential:
		return newAverage(l)
	}
	return newWindowModel(l)
}

func newWindowModel(l algorithm.Limit) model {
	count, width := big.NewInt(l.Count), int64(l.Period)
	switch l.Algorithm {
	case algorithm.FixedWindow:
		return &alignedWindow{count: count, width: width}
	case algorithm.QuotaReset:
		return &firstUseWindow{count: count, width: width}
	case algorithm.Calendar:
		return &civilWindow{count: count, calendar: newCivil(l)}
	case algorithm.SlidingLog, algorithm.Concurrent:
		return &unitLog{count: count, width: width}
	case algorithm.SlidingWindow:
		return &weightedWindow{count: rat(l.Count), width: width}
	case algorithm.SlidingBuckets:
		return &cellWindow{count: count, width: width, cells: l.Cells}
	case algorithm.RefillBucket:
		return &gridBucket{amount: count, width: width, burst: big.NewInt(l.Burst)}
	}
	panic("no model for " + l.Algorithm)
}

func rat(n int64) *big.Rat            { return new(big.Rat).SetInt64(n) }
func add(a, b *big.Rat) *big.Rat      { return new(big.Rat).Add(a, b) }
func sub(a, b *big.Rat) *big.Rat      { return new(big.Rat).Sub(a, b) }
func mul(a, b *big.Rat) *big.Rat      { return new(big.Rat).Mul(a, b) }
func atMost(a, b *big.Rat) bool       { return a.Cmp(b) <= 0 }
func less(a, b *big.Rat) bool         { return a.Cmp(b) < 0 }
func between(from, to int64) *big.Rat { return sub(rat(to), rat(from)) }

func greater(a, b *big.Rat) *big.Rat {
	if less(a, b) {
		return b
	}
	return a
}

// ceiling returns the smallest whole number that is not below r.
func ceiling(r *big.Rat) *big.Int {
	n := new(big.Int).Neg(r.Num())
	return n.Neg(n.Div(n, r.Denom()))
}

// floor returns ⌊a·b/c⌋ for c > 0.
func floor(a, b, c int64) int64 {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	return n.Div(n, big.NewInt(c)).Int64()
}
