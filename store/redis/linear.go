package redis

import (
	"math/bits"
	"strconv"

	"github.com/weirlimit/weir/algorithm"
)

// A kernel is a limit of the linear family. Products are computed here; the script adds and compares.
type kernel struct {
	algorithm.Interval
	capacity int64
	depth    algorithm.Span
	queue    bool
}

func newKernel(p *algorithm.Program) kernel {
	i, _ := p.Interval()
	capacity := p.Limit().Capacity()
	return kernel{i, capacity, i.Times(capacity), p.Limit().Algorithm == algorithm.LeakyQueue}
}

// times returns how long it takes until this many units are paid, at most the capacity.
func (k kernel) times(units int64) algorithm.Span { return k.Times(min(units, k.capacity)) }

// quick appends the mode and the arguments of a take that take.lua carries out.
func (k kernel) quick(args []string, cost int64, heals bool) []string {
	charge := k.times(cost)
	if k.Unit == 1 {
		return append(args, "take", decimal(charge.Ticks), decimal(k.depth.Ticks))
	}
	return append(args, "take-fraction", decimal(charge.Ticks), decimal(k.depth.Ticks),
		decimal(k.Unit), decimal(charge.Rem), decimal(k.depth.Rem), flag(heals))
}

// args appends the arguments of linear.lua.
func (k kernel) args(args []string, op algorithm.Op, heals bool) []string {
	args = append(args, decimal(k.Unit), decimal(k.depth.Ticks), decimal(k.depth.Rem), flag(heals))
	if op.Kind == algorithm.TakeUpTo {
		cost := min(op.Cost, k.capacity)
		powers := bits.Len64(uint64(cost))
		args = append(args, decimal(cost), strconv.Itoa(powers))
		for i := powers - 1; i >= 0; i-- {
			charge := k.times(1 << i)
			args = append(args, decimal(charge.Ticks), decimal(charge.Rem))
		}
		return args
	}
	charge := k.times(op.Cost)
	args = append(args, decimal(charge.Ticks), decimal(charge.Rem))
	if op.Kind == algorithm.Cancel {
		args = append(args, decimal(op.End), flag(k.queue))
	}
	return args
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
