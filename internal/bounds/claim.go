package bounds

import (
	"fmt"

	"github.com/weirlimit/weir/algorithm"
)

// A size is what the formulas speak of: q units per window of w ticks, capacity b, cells of d ticks.
type size struct{ q, b, w, d int64 }

// A formula is a bound as people read it, and as a number.
type formula struct {
	text string
	of   func(size) int64
}

// A growth is a bound for a closed interval of any length, in ticks.
type growth struct {
	text string
	of   func(s size, length int64) int64
}

// A bound is what an algorithm is said to admit at worst.
type bound struct {
	halfOpen formula // in any half-open window of length w, at cost 1
	closed   formula // in any closed window of length w, at cost 1
	mixed    formula // in any closed window of length w, at any costs
	any      growth  // in any closed interval, at cost 1; no text: nothing is claimed
}

// A claim gives an algorithm its bound.
type claim struct {
	algorithm algorithm.Algorithm
	options   string
	released  bool // a unit counts when its turn comes, not when it is admitted
	bound     bound
}

// claims lists the algorithms in the order of the documentation: all but calendar, which is fixed-window on a grid of days, whose ticks are too
// many to search.
func claims() []claim {
	return []claim{
		{algorithm: algorithm.TokenBucket, bound: bucket},
		{algorithm: algorithm.GCRA, bound: bucket},
		{algorithm: algorithm.LeakyBucket, bound: bucket},
		{algorithm: algorithm.LeakyQueue, bound: bucket},
		{algorithm: algorithm.LeakyQueue, bound: turns, released: true},
		{algorithm: algorithm.Cooldown, bound: bucket},
		{algorithm: algorithm.MinInterval, bound: spacing},
		{algorithm: algorithm.RefillBucket, bound: refills},
		{algorithm: algorithm.FixedWindow, bound: grid},
		{algorithm: algorithm.QuotaReset, bound: quota},
		{algorithm: algorithm.SlidingLog, bound: log},
		{algorithm: algorithm.SlidingWindow, bound: weighted},
		{algorithm: algorithm.SlidingBuckets, bound: cells, options: " cells=3"},
		{algorithm: algorithm.Hybrid, bound: hybrid},
		{algorithm: algorithm.Exponential, bound: bucket},
		{algorithm: algorithm.Concurrent, bound: log},
	}
}

var (
	once      = formula{"q", func(s size) int64 { return s.q }}
	onceMore  = formula{"q+1", func(s size) int64 { return s.q + 1 }}
	twice     = formula{"2q", func(s size) int64 { return 2 * s.q }}
	twiceLess = formula{"2q−1", func(s size) int64 { return 2*s.q - 1 }}
	burstLess = formula{"b+q−1", func(s size) int64 { return s.b + s.q - 1 }}
	burst     = formula{"b+q", func(s size) int64 { return s.b + s.q }}
)

var (
	bucket = bound{burstLess, burst, burst, growth{"b+⌊L/T⌋", func(s size, length int64) int64 {
		return s.b + length*s.q/s.w
	}}}
	spacing = bound{once, onceMore, onceMore, growth{"1+⌊L/T⌋", func(s size, length int64) int64 {
		return 1 + length*s.q/s.w
	}}}
	// A request of cost b is let go as one.
	turns = bound{once, onceMore, burst, spacing.any}
	// For b ≥ q. The grid starts with a request: at an interval's start a key is either fresh, or at least one unit
	// was taken before.
	refills = bound{burstLess, burst, burst, growth{"max(b+q⌊L/w⌋, b−1+q⌈L/w⌉)", func(s size, length int64) int64 {
		return max(s.b+s.q*(length/s.w), s.b-1+s.q*up(length, s.w))
	}}}
	// Likewise, with a window for a grid.
	quota = bound{twiceLess, twice, twice, growth{"max(q+q⌊L/w⌋, q−1+q⌈L/w⌉)", refills.any.of}}
	grid  = bound{twice, twice, twice, growth{"q+q⌈L/w⌉", func(s size, length int64) int64 {
		return s.q + s.q*up(length, s.w)
	}}}
	log = bound{once, twice, twice, growth{"q+q⌊L/w⌋", func(s size, length int64) int64 {
		return s.q + s.q*(length/s.w)
	}}}
	weighted = bound{halfOpen: twiceLess, closed: twiceLess, mixed: twiceLess}
	cells    = bound{once, once, once, growth{"q⌈(L+d)/(w+d)⌉", func(s size, length int64) int64 {
		return s.q * up(length+s.d, s.w+s.d)
	}}}
	// For q ≥ 2: a quota of 1 never gets to be smooth, and is a quota-reset.
	hybrid = bound{halfOpen: twiceLess, closed: twiceLess, mixed: twice}
)

// text returns the limit text of q units per w ticks.
func text(name algorithm.Algorithm, q, w int64, options string) string {
	if name == algorithm.Concurrent {
		return fmt.Sprintf("%s %d lease=%dns", name, q, w)
	}
	return fmt.Sprintf("%s %d/%dns%s", name, q, w, options)
}

// up returns ⌈a/b⌉.
func up(a, b int64) int64 { return (a + b - 1) / b }
