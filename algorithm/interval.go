package algorithm

import (
	"math"
	"math/bits"
	"time"
)

// An Interval is the time in which a limit of the linear family gets back one unit: Step/Unit ticks, in lowest terms, so that rates are
// exact. Stores whose engine decides compute products with it, in 128 bits; the engine adds and compares.
type Interval struct{ Step, Unit int64 }

// A Span is Ticks + Rem/Unit ticks, 0 ≤ Rem < Unit, of an [Interval].
type Span struct{ Ticks, Rem int64 }

// Interval returns the interval of a limit of the linear family. For a program of [CompileShared] it is in 1/[SharedUnit] ns. A
// state is whole ticks and, where Unit is not 1, a remainder in 1/Unit ticks. ok is false for other algorithms.
func (p *Program) Interval() (i Interval, ok bool) {
	switch m := p.machine.(type) {
	case linear:
		return m.Interval, true
	case shared:
		return m.Interval, true
	}
	return Interval{}, false
}

// newInterval returns Period/Count in ticks.
func newInterval(l Limit, tick int64) (Interval, error) {
	// Period/(Count·tick) with the common factors out first, so that the products are as small as they can be.
	p, n := reduce(int64(l.Period), l.Count)
	p, t := reduce(p, tick)
	hi, lo := bits.Mul64(uint64(n), uint64(t))
	if hi != 0 || lo > math.MaxInt64 {
		return Interval{}, refuse("count", l.Count, "less per %v in this store", l.Period)
	}
	return Interval{p, int64(lo)}, nil
}

func reduce(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

// Times returns the time in which so many units come back, at most the capacity of the limit.
func (i Interval) Times(units int64) Span {
	hi, lo := bits.Mul64(uint64(units), uint64(i.Step))
	ticks, rem := bits.Div64(hi, lo, uint64(i.Unit))
	return Span{int64(ticks), int64(rem)}
}

// units returns how many whole units come back in a span, of at most the time for the capacity.
func (i Interval) units(s Span) int64 {
	hi, lo := bits.Mul64(uint64(s.Ticks), uint64(i.Unit))
	lo, carry := bits.Add64(lo, uint64(s.Rem), 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(i.Step))
	return int64(n)
}

func (i Interval) plus(a, b Span) Span {
	ticks, rem := a.Ticks+b.Ticks, uint64(a.Rem)+uint64(b.Rem)
	if rem >= uint64(i.Unit) {
		ticks, rem = ticks+1, rem-uint64(i.Unit)
	}
	return Span{ticks, int64(rem)}
}

// Minus returns a − b.
func (i Interval) Minus(a, b Span) Span {
	diff := Span{a.Ticks - b.Ticks, a.Rem - b.Rem}
	if diff.Rem < 0 {
		diff.Ticks, diff.Rem = diff.Ticks-1, diff.Rem+i.Unit
	}
	return diff
}

func (s Span) less(other Span) bool {
	return s.Ticks < other.Ticks || s.Ticks == other.Ticks && s.Rem < other.Rem
}

// ceil returns the span in ticks, rounded up.
func (s Span) ceil() time.Duration {
	if s.Rem > 0 {
		return time.Duration(s.Ticks + 1)
	}
	return time.Duration(s.Ticks)
}
