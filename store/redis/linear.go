package redis

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// tick is the length of the microseconds in which the script counts.
const tick = int64(time.Microsecond)

// kernel is what the script needs to know of a limit of the linear family: all products are made here, where there are
// 128 bits, and the script adds and compares.
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

func (k kernel) minus(a, b instant) instant {
	if a.rem < b.rem {
		return instant{a.ticks - 1 - b.ticks, a.rem + k.unit - b.rem}
	}
	return instant{a.ticks - b.ticks, a.rem - b.rem}
}

// quick appends the arguments of a Take that the script's first lines carry out: its mode, and theirs.
func (k kernel) quick(args []string, cost int64, heals bool) []string {
	charge, mode := k.times(cost), "t"
	most := k.minus(k.depth, charge)
	if k.unit > 1 {
		mode = "r"
	}
	ceiling := never
	if heals {
		ceiling = decimal(k.depth.ticks)
	}
	args = append(args, mode, decimal(charge.ticks), decimal(most.ticks), ceiling)
	if k.unit > 1 {
		args = append(args, decimal(k.unit), decimal(charge.rem), decimal(most.rem), decimal(k.depth.rem))
	}
	return args
}

// never is more than any debt.
const never = "1e300"

// args appends what linear.lua reads.
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
