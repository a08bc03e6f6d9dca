package postgres

import (
	"math/bits"

	"github.com/weirlimit/weir/algorithm"
)

// An interval is the time that a unit takes, step/unit µs. What needs 128 bits is worked out here; the statement adds and compares.
type interval struct{ step, unit int64 }

// A span is ticks + rem/unit µs.
type span struct{ ticks, rem int64 }

func intervalOf(p *algorithm.Program) (interval, bool) {
	step, unit, ok := p.Interval()
	return interval{step, unit}, ok
}

// times returns the time that this many units take, at most the capacity.
func (i interval) times(units int64) span {
	hi, lo := bits.Mul64(uint64(units), uint64(i.step))
	ticks, rem := bits.Div64(hi, lo, uint64(i.unit))
	return span{int64(ticks), int64(rem)}
}

// minus returns a − b.
func (i interval) minus(a, b span) span {
	if a.rem < b.rem {
		return span{a.ticks - b.ticks - 1, i.unit - b.rem + a.rem}
	}
	return span{a.ticks - b.ticks, a.rem - b.rem}
}
