package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const (
	stepsPerAlgorithm = 10_000 // at least
	stepsPerTrace     = 125
	stepsShown        = 8
)

// eras are times at which traces begin: today, the far side of 32 bits and of 2^51 microseconds, and both sides of 1970.
var eras = []int64{start, 2_550_000_000_000_000_000, 0, -1_000_000_000_000_000}

// traces runs random operations of every limit on many keys, at times that are the caller's.
func traces(k *check) {
	traceAll(k, limits, stepsPerAlgorithm, true)
}

// extremeTraces does it for limits of great numbers. In nanoseconds not all of them are exact, so that memory is no measure.
func extremeTraces(k *check) {
	traceAll(k, extremes, stepsPerAlgorithm/20, false)
}

func traceAll(k *check, texts []string, stepsEach int, memory bool) {
	if testing.Short() {
		stepsEach /= 10
	}
	byAlgorithm := map[algorithm.Algorithm]int{}
	for _, text := range texts {
		byAlgorithm[algorithm.MustParseLimit(text).Canonical().Algorithm]++
	}
	var all []*trace
	stores := map[bool]store.Store{}
	for _, text := range texts {
		limit := algorithm.MustParseLimit(text)
		for i := range 1 + stepsEach/byAlgorithm[limit.Canonical().Algorithm]/stepsPerTrace {
			bind := k.bind
			if i/2%2 == 1 {
				bind = k.bindUnnamed
			}
			if b := bind(k.traceStore(stores, i), text); b != nil {
				t := newTrace(i, b)
				if memory {
					t.inMemory()
				}
				all = append(all, t)
			}
		}
	}
	k.runTraces(all)
}

// back reports whether time may step back in a trace.
func back(i int) bool { return i%3 == 2 }

// traceStore returns the store of a trace. A store that is not shared is of one trace, because it may
// have one clock.
func (k *check) traceStore(stores map[bool]store.Store, i int) store.Store {
	if stores[back(i)] == nil || !k.shared() {
		stores[back(i)] = k.trusting()
	}
	return stores[back(i)]
}

func (k *check) runTraces(all []*trace) {
	steps := stepsPerTrace
	if testing.Short() {
		steps /= 2
	}
	k.Logf("%d traces of %d steps", len(all), steps)
	k.each(len(all), func(i int) {
		for range steps {
			all[i].step()
		}
	})
}

// changeTraces runs random operations, reservations among them, on keys of names whose limits change.
func changeTraces(k *check) {
	n := 300
	if testing.Short() {
		n /= 10
	}
	var all []*trace
	stores := map[bool]store.Store{}
	for i := range n {
		s := k.traceStore(stores, i)
		random := k.random("limits", i)
		var same []*bound
		for _, n := range random.Perm(len(limits)) {
			b := k.bind(s, limits[n])
			if b != nil && len(same) > 0 {
				b = same[0].another(s, limits[n])
			}
			if b != nil {
				same = append(same, b)
			}
			if len(same) == 1+i%4 {
				break
			}
		}
		if len(same) == 0 {
			k.Skip("the store refuses all limits")
		}
		t := newTrace(i, same...)
		t.reserves = true
		all = append(all, t)
	}
	k.runTraces(all)
}

// A trace is a sequence of operations on one key.
type trace struct {
	*bound // that of the next step
	same   []*bound
	random *rand.Rand
	key    string
	back   bool // time may step back
	now    int64
	seen   int64 // the latest time at which the key was fresh: before it a store may deny what it likes
	model  model
	memory store.Binding // nil once it may differ

	last     algorithm.Verdict
	ends     []int64 // of what was taken, for Cancel
	reserves bool
	ids      int64 // of reservations, so far
	life     int64 // of the last of them
	shown    []string
}

// newTrace makes a trace of the limits of one name, or of one limit.
func newTrace(i int, same ...*bound) *trace {
	b := same[0]
	t := &trace{bound: b, same: same, random: b.random(b.limit, i), key: fmt.Sprint("key ", i), back: back(i), now: eras[i/3%len(eras)], model: freshModel()}
	t.now += t.random.Int64N(int64(time.Hour)) / 1000 * 1000
	t.seen = t.now
	return t
}

// inMemory has the store in memory do the same.
func (t *trace) inMemory() {
	var err error
	if t.memory, err = memory.New(memory.Options{}).Bind(t.spec); err != nil {
		t.Fatalf("%v in memory: %v", t.limit, err)
	}
}

// latest is the last time that a trace comes to: later ones are none that store.Nanoseconds returns.
const latest = algorithm.MaxTime - int64(time.Second)

func (t *trace) step() {
	if t.random.IntN(6) == 0 {
		t.bound = t.same[t.random.IntN(len(t.same))]
	}
	t.now = min(max(t.seen, t.now+t.gap()/1000*1000), latest)
	op := t.op()
	got := t.do(t.key, op, t.now)
	if t.shown = append(t.shown, fmt.Sprintf("at %s %v: %s: %s", showTime(t.now), t.limit, describe(op), show(got))); len(t.shown) > stepsShown {
		t.shown = t.shown[1:]
	}
	next, want, ok := t.model.step(t.program, t.inTicks(op), t.ticks(t.now), got)
	if !ok {
		t.Fatalf("%v, %s: the last of these steps should be %s:\n\t%s", t.limit, t.key, showAll(want), strings.Join(t.shown, "\n\t"))
	}
	t.compare(op, got)
	if now := t.ticks(t.now); t.model.fresh(now) || next.fresh(now) {
		t.seen = max(t.seen, t.now)
	}
	t.model, t.last = next, got
	if (op.Kind <= algorithm.TakeUpTo || op.Kind == algorithm.Renew) && got.Granted > 0 {
		t.ends = append(t.ends, t.now+int64(got.Reset))
	}
}

// compare holds a verdict against that of the store in memory, whose waits are rounded up to a nanosecond only.
func (t *trace) compare(op algorithm.Op, got algorithm.Verdict) {
	if t.memory == nil {
		return
	}
	if op.Kind == algorithm.Cancel && int64(t.limit.Period/t.tick)%t.limit.Count != 0 {
		t.memory = nil // where units are no whole number of ticks, a Cancel may keep up to a tick, and ticks differ
		return
	}
	want, err := t.memory.Do(context.Background(), t.key, op, t.now)
	if err != nil {
		t.Fatalf("%v in memory: %v", t.limit, err)
	}
	if want.Wait != algorithm.Never {
		want.Wait = t.roundUp(want.Wait)
	}
	want.Reset = t.roundUp(want.Reset)
	if op.Kind == algorithm.Cancel && t.model.fresh(t.ticks(t.now)) {
		want.Granted = got.Granted // of a fresh state it says whether the store has forgotten it
	}
	if got != want {
		t.Fatalf("%v, %s: the last of these steps is %s in memory:\n\t%s", t.limit, t.key, show(want), strings.Join(t.shown, "\n\t"))
	}
}

func (k *check) roundUp(d time.Duration) time.Duration {
	if over := d % k.tick; over > 0 {
		d += k.tick - over
	}
	return d
}

// op draws an operation.
func (t *trace) op() algorithm.Op {
	if t.reserves && t.random.IntN(5) == 0 {
		return t.reservation()
	}
	switch n := t.random.IntN(100); {
	case n < 15 && t.limit.Algorithm == algorithm.Concurrent:
		return algorithm.Op{Kind: algorithm.Renew, Cost: t.cost(), End: t.end()}
	case n < 60:
		return algorithm.Op{Cost: t.cost()}
	case n < 72:
		return algorithm.Op{Kind: algorithm.TakeUpTo, Cost: t.cost()}
	case n < 82:
		return algorithm.Op{Kind: algorithm.Refund, Cost: t.cost()}
	case n < 95:
		return algorithm.Op{Kind: algorithm.Cancel, Cost: t.cost(), End: t.end()}
	case n < 98:
		return algorithm.Op{}
	}
	return algorithm.Op{Kind: algorithm.Reset}
}

// reservation draws a Reserve, mostly of a new ID, or a Commit, mostly of one that was reserved lately.
func (t *trace) reservation() algorithm.Op {
	id := 1 + t.ids - t.random.Int64N(min(4, t.ids+1))
	if t.random.IntN(2) == 0 {
		return algorithm.Op{Kind: algorithm.Commit, Late: t.random.IntN(3) == 0, ID: id, Cost: t.random.Int64N(2) * t.cost()}
	}
	if t.random.IntN(6) > 0 {
		t.ids++
		id = t.ids
	}
	lives := []int64{1000, int64(t.interval()), int64(t.limit.Period) / 2, int64(t.limit.Period), 2 * int64(t.limit.Period)}
	t.life = max(1000, lives[t.random.IntN(len(lives))]/1000*1000)
	return algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: t.cost(), Life: t.life}
}

func (t *trace) cost() int64 {
	capacity := t.limit.Capacity()
	costs := []int64{
		1, 1, 1, 1, 1, 2, 2, 3, 0, capacity, capacity - capacity/2, t.last.Remaining, min(t.last.Remaining, math.MaxInt64-1) + 1,
	}
	if t.random.IntN(20) == 0 {
		costs = []int64{min(capacity, math.MaxInt64-1) + 1, 1 << 53, 1<<53 + 1, 1 << 62, math.MaxInt64}
	}
	return costs[t.random.IntN(len(costs))]
}

// end draws the End of a Cancel: mostly that of something taken lately.
func (t *trace) end() int64 {
	if len(t.ends) == 0 || t.random.IntN(8) == 0 {
		return t.now + t.random.Int64N(int64(t.limit.Period)+1)/1000*1000
	}
	return t.ends[len(t.ends)-1-t.random.IntN(min(4, len(t.ends)))]
}

// gap draws the time from one operation to the next, in nanoseconds, around the edges that the last verdict and the limit make.
func (t *trace) gap() int64 {
	period := int64(t.limit.Period)
	interval := period / t.limit.Count
	wait := int64(t.last.Wait)
	if t.last.Wait == algorithm.Never || t.last.Granted >= 0 {
		wait = interval
	}
	const tick = 1000
	if t.back && t.random.IntN(5) == 0 {
		back := []int64{tick, interval + tick, period / 2, period, period + tick, 3 * period}
		return -back[t.random.IntN(len(back))]
	}
	gaps := []int64{
		0, 0, 0, 0, tick, wait + tick - 1, wait - tick, int64(t.last.Reset), int64(t.last.Reset) - tick,
		interval, interval / 3, t.random.Int64N(period), period - tick, period,
	}
	if t.reserves {
		gaps = append(gaps, t.life, t.life-tick)
	}
	if t.random.IntN(25) == 0 {
		gaps = []int64{10*period + tick, 1000 * period}
	}
	gap := gaps[t.random.IntN(len(gaps))]
	return max(0, min(gap, int64(365*24*time.Hour)))
}
