package faults

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirlimit/weir/algorithm"
)

// A span is the time in which a unit was certainly admitted, in nanoseconds since the Unix epoch.
// The unit of a concurrent limit was certainly in flight during the whole span.
type span struct{ start, end int64 }

// slack is the precision of the engines' clocks.
const slack = 2000

// A state is a key of a budget.
type state struct {
	budget int
	key    int32
}

// findings are the result of checking the calls of all processes.
type findings struct {
	over   int64    // units above the bound of their limit
	used   [2]int64 // units charged to left and right
	lost   int64    // admitted units that the engine forgot
	wrong  []string // each breach of a promise
	counts [effects]int
}

// A loss is the time in which an engine lost data by design: all of it, or the latest changes. The
// zero loss is none.
type loss struct {
	span
	all bool // all data
}

func (l loss) any() bool { return l != loss{} }

// check holds calls to the bounds of their limits. used returns the units that an exact budget has
// charged for a key after the load. Where data was lost, the bounds hold for the time before the
// loss and for the time after it.
func check(calls []call, lost loss, used func(budget int, key int32) (int64, error)) findings {
	var f findings
	spans, charges := map[state][]span{}, map[state][]charge{}
	for _, c := range calls {
		f.counts[c.Effect]++
		for i, b := range mix[c.Kind] {
			at := state{b, c.Keys[i]}
			all := spans[at]
			switch c.Effect {
			case admitted:
				all = append(all, c.span(b))
				charges[at] = append(charges[at], c.charge(b))
			case unknown:
				charges[at] = append(charges[at], c.charge(b))
			default:
			}
			spans[at] = all // also if nothing was admitted
		}
	}
	for at, all := range spans {
		before, after := lost.split(all)
		f.bound(at, before)
		f.bound(at, after)
		if budgets[at.budget].exact {
			f.charges(at, int64(len(all)), int64(len(after)), lost.most(charges[at]), lost, used)
		}
	}
	slices.Sort(f.wrong)
	return f
}

// span returns the span of an admitted call.
func (c *call) span(b int) span {
	l := limits[b]
	if l.Algorithm != algorithm.Concurrent {
		return span{c.Start, c.End}
	}
	end := c.Start + int64(l.Period)
	if c.Release != 0 {
		end = min(end, c.Release)
	}
	return span{c.End, end}
}

// split returns the spans certainly before the loss, and the spans certainly after the loss. Without
// a loss, all spans are after.
func (l loss) split(all []span) (before, after []span) {
	if !l.any() {
		return nil, all
	}
	for _, s := range all {
		switch {
		case s.end < l.start:
			before = append(before, s)
		case s.start > l.end:
			after = append(after, s)
		}
	}
	return before, after
}

var limits = func() (all []algorithm.Limit) {
	for _, b := range budgets {
		all = append(all, algorithm.MustParseLimit(b.limit))
	}
	return all
}()

// bound reports units above the bound of the limit.
func (f *findings) bound(at state, spans []span) {
	l := limits[at.budget]
	var over int64
	switch period := int64(l.Period); l.Algorithm {
	case algorithm.FixedWindow:
		over = overGrid(spans, period, l.Count)
	case algorithm.SlidingLog:
		over = overWindow(spans, period, l.Count)
	case algorithm.SlidingWindow:
		over = overWindow(spans, period, 2*l.Count-1)
	case algorithm.Concurrent:
		over = overAtOnce(spans, l.Count)
	default:
		over = overLinear(spans, float64(period)/float64(l.Count), l.Capacity())
	}
	if over > 0 {
		f.over += over
		f.wrong = append(f.wrong, fmt.Sprintf("%v, key %d: %d units above the bound", l, at.key, over))
	}
}

// A charge is the change of a key by a call that was admitted, or whose effect is unknown.
type charge struct {
	span        // of the call; the end is the greatest time if the effect is unknown
	last  int64 // start of the last operation
	peak  int64 // the most units charged during the call
	units int64 // charged after the call, at most
}

func (c *call) charge(b int) charge {
	made := charge{span{c.Start, c.End}, c.Start, 1, 1}
	if b == hold {
		made.last, made.peak = max(c.Start, c.Release), estimate
	}
	if c.Effect == unknown {
		made.end, made.units = math.MaxInt64, made.peak
	}
	return made
}

// most returns the most units that the engine may have charged for a key. A loss of the latest
// changes leaves the record as it was at some time before the end of the loss. A call before that
// time counts with its units, a call at that time with its peak, and a later call with nothing,
// unless it may have reached the engine after the loss.
func (l loss) most(charges []charge) (most int64) {
	type event struct{ at, change int64 }
	var events []event
	var sum int64 // if the record was left as it was before all calls
	for _, c := range charges {
		if c.end < l.start {
			events = append(events, event{c.start, c.peak}, event{c.end, c.units - c.peak})
			continue
		}
		sum += c.units
		if c.last <= l.end {
			events = append(events, event{c.start, c.peak - c.units}, event{c.end, c.units - c.peak})
		}
	}
	most = sum
	if l.all {
		return most
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.change, a.change)) })
	for _, e := range events {
		sum += e.change
		most = max(most, sum)
	}
	return most
}

// charges compares admitted units with the units charged by the engine. after is the number of units
// admitted after a loss, most the greatest number that may be charged.
func (f *findings) charges(at state, all, after, most int64, lost loss, used func(int, int32) (int64, error)) {
	charged, err := used(at.budget, at.key)
	if at.budget == left || at.budget == right {
		f.used[at.budget-left] += charged
	}
	l := fmt.Sprintf("%v %q", limits[at.budget], budgets[at.budget].name)
	switch {
	case err != nil:
		f.wrong = append(f.wrong, fmt.Sprintf("%v, key %d: %v", l, at.key, err))
	case charged < after:
		f.wrong = append(f.wrong, fmt.Sprintf("%v, key %d: %d units charged, and %d admitted", l, at.key, charged, after))
	case charged > most:
		f.wrong = append(f.wrong, fmt.Sprintf("%v, key %d: %d units charged, %d admitted and %d possible: a call that changed nothing was charged",
			l, at.key, charged, all, most))
	}
	if lost.any() {
		f.lost += max(0, all-charged)
	}
}

// overGrid returns the most units above count in a window of a fixed grid.
func overGrid(spans []span, period, count int64) (over int64) {
	windows := map[int64]int64{}
	for _, s := range spans {
		if index := (s.start - slack) / period; index == (s.end+slack)/period {
			windows[index]++
			over = max(over, windows[index]-count)
		}
	}
	return over
}

// overWindow returns the most units above count in any time shorter than period.
func overWindow(spans []span, period, count int64) (over int64) {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for i, first := range spans {
		end, inside := first.start+period-slack, int64(0)
		for _, s := range spans[i:] {
			if s.start > end {
				break
			}
			if s.end <= end {
				inside++
			}
		}
		over = max(over, inside-count)
	}
	return over
}

// overAtOnce returns the most units above count in flight at an instant.
func overAtOnce(spans []span, count int64) (over int64) {
	type event struct{ at, change int64 }
	var events []event
	for _, s := range spans {
		if s.start < s.end-slack {
			events = append(events, event{s.start, 1}, event{s.end - slack, -1})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.change, b.change)) })
	var inFlight int64
	for _, e := range events {
		inFlight += e.change
		over = max(over, inFlight-count)
	}
	return over
}

// overLinear returns the most units above the capacity in any time, if a unit comes back in each
// interval. For each start a of a span it keeps the units admitted since a less the units regained
// since a, as the end of the time moves on, and searches for the greatest.
func overLinear(spans []span, interval float64, capacity int64) (over int64) {
	if len(spans) == 0 {
		return 0
	}
	spans = slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.end, b.end) })
	var starts []int64
	for _, s := range spans {
		starts = append(starts, s.start)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	tree := newTree(len(starts))
	for _, s := range spans {
		i, _ := slices.BinarySearch(starts, s.start)
		tree.add(1, 0, tree.size, i, interval) // one more unit since each earlier start
		tree.activate(i, float64(s.start-starts[0]))
		debt := tree.max() - float64(s.end-starts[0]) - slack
		over = max(over, int64(math.Ceil(debt/interval))-capacity)
	}
	return over
}

// A tree keeps numbers. In logarithmic time it adds to a prefix of the numbers, and finds the
// greatest active number.
type tree struct {
	size   int
	most   []float64 // of a node, without the additions to its parents
	added  []float64
	active []bool
}

func newTree(n int) *tree {
	size := 1
	for size < n {
		size *= 2
	}
	t := &tree{size: size, most: make([]float64, 2*size), added: make([]float64, 2*size), active: make([]bool, n)}
	for i := range t.most {
		t.most[i] = math.Inf(-1)
	}
	return t
}

func (t *tree) max() float64 { return t.most[1] }

// add adds x to the numbers 0 to last. The node has the numbers from to to−1; the root is 1.
func (t *tree) add(node, from, to, last int, x float64) {
	switch {
	case from > last:
	case to-1 <= last:
		t.added[node] += x
		t.most[node] += x
	default:
		middle := (from + to) / 2
		t.add(2*node, from, middle, last, x)
		t.add(2*node+1, middle, to, last, x)
		t.most[node] = max(t.most[2*node], t.most[2*node+1]) + t.added[node]
	}
}

// activate adds x to number i and makes the number active. A second call does nothing.
func (t *tree) activate(i int, x float64) {
	if t.active[i] {
		return
	}
	t.active[i] = true
	node := t.size + i
	t.most[node] = t.added[node] + x
	for node /= 2; node > 0; node /= 2 {
		t.most[node] = max(t.most[2*node], t.most[2*node+1]) + t.added[node]
	}
}
