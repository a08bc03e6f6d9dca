package redis

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// tick is the length of the microseconds in which the script counts.
const tick = int64(time.Microsecond)

// kernel has the exact interval of a limit of the linear family. Products are computed here, with
// 128 bits; the script adds and compares.
type kernel struct {
	step, unit uint64 // a unit takes step/unit µs
	capacity   int64
	depth      instant
	queue      bool
}

// An instant is ticks + rem/unit µs.
type instant struct{ ticks, rem uint64 }

func newKernel(l algorithm.Limit, timeDebt bool) kernel {
	k := kernel{capacity: l.Capacity(), queue: l.Algorithm == algorithm.LeakyQueue}
	if timeDebt { // sixteenths of a nanosecond, rounded up
		hi, lo := bits.Mul64(uint64(l.Period), algorithm.SharedUnit)
		whole, rest := bits.Div64(hi, lo, uint64(l.Count))
		k.step, k.unit = whole, uint64(algorithm.SharedUnit*tick)
		if rest > 0 {
			k.step++
		}
	} else {
		period, count := reduce(uint64(l.Period), uint64(l.Count))
		period, parts := reduce(period, uint64(tick))
		k.step, k.unit = period, count*parts
	}
	k.depth = k.times(k.capacity)
	return k
}

func reduce(a, b uint64) (uint64, uint64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

// times returns how long it takes until this many units are paid, at most the capacity.
func (k kernel) times(units int64) instant {
	hi, lo := bits.Mul64(uint64(min(units, k.capacity)), k.step)
	ticks, rem := bits.Div64(hi, lo, k.unit)
	return instant{ticks, rem}
}

// quick appends the mode and the arguments of a take that take.lua carries out.
func (k kernel) quick(args []string, cost int64, heals bool) []string {
	charge := k.times(cost)
	if k.unit == 1 {
		return append(args, "take", decimal(charge.ticks), decimal(k.depth.ticks))
	}
	return append(args, "take-fraction", decimal(charge.ticks), decimal(k.depth.ticks),
		decimal(k.unit), decimal(charge.rem), decimal(k.depth.rem), flag(heals))
}

// args appends the arguments of linear.lua.
func (k kernel) args(args []string, op algorithm.Op, heals bool) []string {
	args = append(args, decimal(k.unit), decimal(k.depth.ticks), decimal(k.depth.rem), flag(heals))
	if op.Kind == algorithm.TakeUpTo {
		cost := min(op.Cost, k.capacity)
		powers := bits.Len64(uint64(cost))
		args = append(args, strconv.FormatInt(cost, 10), strconv.Itoa(powers))
		for i := powers - 1; i >= 0; i-- {
			charge := k.times(1 << i)
			args = append(args, decimal(charge.ticks), decimal(charge.rem))
		}
		return args
	}
	charge := k.times(op.Cost)
	args = append(args, decimal(charge.ticks), decimal(charge.rem))
	if op.Kind == algorithm.Cancel {
		args = append(args, strconv.FormatInt(op.End, 10), flag(k.queue))
	}
	return args
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
