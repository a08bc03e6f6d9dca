package algorithm

import (
	"math"
	"math/bits"
	"time"
)

// A Word is a limit of the linear family whose state fits into one int64, for a clock that counts
// nanoseconds: the theoretical arrival time in sub-nanosecond units since an origin. A store can keep it in one
// atomic word, and decide with one compare-and-swap; a denial writes nothing.
//
// It is [Program] with other units: a test proves the answers equal.
type Word struct {
	step     int64 // emission interval, in units
	depth    int64 // capacity·step
	unit     int64 // units per nanosecond
	origin   int64 // nanoseconds since the Unix epoch at which the word is 0
	capacity int64
	queue    bool
}

// wordOrigin is where words of more than one unit per nanosecond count from: 2020-01-01. Four units per
// nanosecond then reach from 1947 to 2093.
const wordOrigin = 1577836800 * int64(time.Second)

// maxWordUnit is the largest denominator of an exact word.
const maxWordUnit = 4

// Word returns the program over one word, if its limit is of the linear family and one word is exact for it.
func (p *Program) Word() (Word, bool) {
	m, ok := p.machine.(linear)
	if !ok || p.tick != 1 || m.Unit > maxWordUnit {
		return Word{}, false
	}
	w := Word{step: m.Step, unit: m.Unit, capacity: p.capacity, queue: m.queue}
	if m.Unit > 1 {
		w.origin = wordOrigin
	}
	return w, w.setDepth()
}

// SharedUnit is the unit of words whose meaning does not depend on the limit: sixteenths of a nanosecond.
const SharedUnit = 16

// sharedLeast is the least interval, in units, that is rounded up to a unit: less would slow the rate by more than 0.1 %.
const sharedLeast = 1000

// SharedWord returns the program over a word that means the same for every limit, in units of 1/SharedUnit ns
// since origin, so that limits may differ between the requests of one key. The emission interval is rounded up to
// such a unit: the rate is low by at most 6.25 ppm at 100,000/s, and a rate that would be low by more than 0.1 %, above
// 16,000,000/s, is not ok. The word reaches 18 years from origin, less the
// time that a key takes to become fresh.
func (p *Program) SharedWord(origin int64) (Word, bool) {
	step, ok := p.limit.sharedStep()
	if !ok || p.tick != 1 {
		return Word{}, false
	}
	w := Word{step: step, unit: SharedUnit, origin: origin, capacity: p.capacity, queue: p.limit.Algorithm == LeakyQueue}
	return w, w.setDepth()
}

// sharedStep returns the emission interval of a limit of the linear family in units of 1/SharedUnit ns, rounded up.
func (l Limit) sharedStep() (step int64, ok bool) {
	if !l.Algorithm.Linear() {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(l.Period), SharedUnit)
	if hi >= uint64(l.Count) {
		return 0, false
	}
	whole, rest := bits.Div64(hi, lo, uint64(l.Count))
	if rest > 0 {
		whole++
	}
	return int64(whole), whole < maxSpan && (rest == 0 || whole >= sharedLeast)
}

func (w *Word) setDepth() bool {
	if w.capacity > maxSpan/w.step {
		return false
	}
	w.depth = w.capacity * w.step
	return true
}

// Units returns a time in the word's units since its origin; ok is false for a time out of its reach.
func (w *Word) Units(now int64) (units int64, ok bool) {
	if w.unit == 1 {
		return now, true
	}
	ns := now - w.origin
	if reach := (math.MaxInt64 - w.depth) / w.unit; ns > reach || ns < -reach {
		return 0, false
	}
	return ns * w.unit, true
}

// Time returns the first nanosecond since the Unix epoch that is not before a time in units.
func (w *Word) Time(units int64) int64 {
	if w.unit == 1 {
		return units
	}
	ns := floorDiv(units, w.unit)
	if ns*w.unit < units {
		ns++
	}
	return ns + w.origin
}

// State returns the state of the limit's [Program] that says the same as a word of [Program.Word].
func (w *Word) State(word int64) []int64 {
	if w.unit == 1 {
		return []int64{word}
	}
	ns := floorDiv(word, w.unit)
	return []int64{ns + w.origin, word - ns*w.unit}
}

// Unit returns how many units make a nanosecond. Words of equal unit and origin mean the same.
func (w *Word) Unit() int64 { return w.unit }

// Take is the transition: it returns the next word, the same unless units were taken. now is in units; a word
// of at most now stands for a key never seen. cost must not be negative.
func (w *Word) Take(word, cost, now int64) (next int64, allowed bool) {
	if cost > w.capacity {
		return word, false
	}
	charge := cost * w.step
	debt := w.debt(word, now)
	if cost == 0 {
		return word, true
	}
	if debt > w.depth-charge {
		return word, false
	}
	return now + debt + charge, true
}

// debt is what a key has yet to pay at now.
func (w *Word) debt(word, now int64) int64 {
	if word <= now {
		return 0
	}
	if debt := word - now; debt >= 0 {
		return debt
	}
	return math.MaxInt64
}

// Verdict derives the verdict of a Take at now that found word, left next, and was allowed or not.
func (w *Word) Verdict(word, next, cost, now int64, allowed bool) Verdict {
	debt := w.debt(next, now)
	v := Verdict{Granted: cost, Reset: w.nanoseconds(debt)}
	if debt < w.depth {
		v.Remaining = (w.depth - debt) / w.step
	}
	switch {
	case !allowed:
		v.Granted, v.Wait = -1, w.retry(cost, debt)
	case w.queue && cost > 0:
		v.Wait = w.nanoseconds(w.debt(word, now))
	}
	return v
}

func (w *Word) retry(cost, debt int64) time.Duration {
	if cost > w.capacity {
		return Never
	}
	return w.nanoseconds(debt - (w.depth - cost*w.step))
}

// take is Take and Verdict.
func (w *Word) take(word, cost, now int64) (next int64, v Verdict) {
	next, allowed := w.Take(word, cost, now)
	return next, w.Verdict(word, next, cost, now, allowed)
}

// Apply is the transition for any operation. A Reset returns now, which stands for a key never seen.
func (w *Word) Apply(word int64, op Op, now int64) (next int64, v Verdict) {
	cost := op.Cost
	switch op.Kind {
	case Cancel:
		word, cost = w.cancel(word, cost, op.End, now)
		next, v = w.take(word, 0, now)
		v.Granted = cost
		return next, v
	case TakeUpTo:
		_, v = w.take(word, 0, now)
		if cost = min(cost, v.Remaining); cost == 0 && op.Cost > 0 {
			cost = 1 // denied
		}
	case Refund:
		word, cost = w.refund(word, cost, now), 0
	case Renew: // a word has no leases
		cost = 0
	case Reset:
		word, cost = now, 0
	}
	return w.take(word, cost, now)
}

func (w *Word) refund(word, cost, now int64) int64 {
	if cost == 0 || word <= now {
		return word
	}
	return max(now, word-min(cost, w.capacity)*w.step)
}

// cancel is as that of the linear program.
func (w *Word) cancel(word, cost, end, now int64) (next, back int64) {
	if w.queue && w.Time(word) != end || word <= now {
		return word, 0
	}
	if w.queue {
		return w.refund(word, cost, now), cost
	}
	left, _ := w.Units(end)
	if left < now {
		return word, 0
	}
	left -= now
	if w.unit > 1 {
		left -= w.unit
	}
	if left < 0 {
		return word, 0
	}
	return max(now, word-min(left, min(cost, w.capacity)*w.step)), cost
}

// nanoseconds rounds up.
func (w *Word) nanoseconds(units int64) time.Duration {
	if w.unit == 1 {
		return time.Duration(units)
	}
	whole := units / w.unit
	if units%w.unit > 0 {
		whole++
	}
	return time.Duration(whole)
}
