package memory

import (
	"math"
	"sync/atomic"
)

const (
	// mostVisited is how many segments one reclaim looks at.
	mostVisited = 8
	// mostReclaims is how many times an operation that found the store full reclaims memory before it is denied.
	mostReclaims = 64
	// pointerBytes is what a place in a directory takes.
	pointerBytes = 8
)

// A reclaimer forgets keys that are fresh again.
type reclaimer interface {
	// dueAt returns a time before which no key of the table is fresh. If that has passed and nothing is found, more is known
	// after a few calls of reclaim.
	dueAt() int64
	// reclaim looks through a part of the table, another one with each call, and reports whether it forgot keys or
	// gave memory back. Only one goroutine calls it at a time.
	reclaim(now int64) bool
}

// reclaim looks through a part of the tables for keys that are fresh at now, and reports whether it forgot any. It costs a
// few loads while none can be.
func (s *Store) reclaim(now int64) (progress bool) {
	if s.dueAt() > now {
		return false
	}
	s.reclaiming.Lock()
	defer s.reclaiming.Unlock()
	for _, t := range *s.tables.Load() {
		if t.dueAt() <= now && t.reclaim(now) {
			progress = true
		}
	}
	return progress
}

// dueAt returns a time before which no key is fresh.
func (s *Store) dueAt() int64 {
	due := int64(math.MaxInt64)
	for _, t := range *s.tables.Load() {
		due = min(due, t.dueAt())
	}
	return due
}

// A dueTime is a time before which no key of a table is fresh. It is kept while the table is walked in parts: the times of
// the parts that the walk has passed are collected, and are the due time when it has come around.
type dueTime struct{ due, passed atomic.Int64 }

func (d *dueTime) init() {
	d.due.Store(math.MaxInt64)
	d.passed.Store(math.MaxInt64)
}

// lower sets the due time to at if it is later. It is called when a key has that time.
func (d *dueTime) lower(at int64) {
	lowerTo(&d.passed, at) // first: around may be between the two
	lowerTo(&d.due, at)
}

// pass is called with the time of a part that the walk passes.
func (d *dueTime) pass(at int64) { lowerTo(&d.passed, at) }

// around is called when the walk has come around.
func (d *dueTime) around() {
	d.due.Store(math.MaxInt64)
	lowerTo(&d.due, d.passed.Swap(math.MaxInt64))
}

func lowerTo(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if old <= to || v.CompareAndSwap(old, to) {
			return
		}
	}
}

// dueAt implements reclaimer.
func (t *table) dueAt() int64 {
	due := t.due.due.Load()
	if due == math.MaxInt64 {
		return due
	}
	return t.word.Time(due)
}

// reclaim implements reclaimer.
func (t *table) reclaim(now int64) bool {
	units, ok := t.word.Units(now)
	if !ok {
		return false
	}
	for range mostVisited {
		d := t.dir.Load()
		if t.cursor >= len(d.segments) {
			t.cursor = 0
			if t.due.around(); t.due.due.Load() > units {
				return false
			}
		}
		at := t.cursor
		g := d.segments[at].Load()
		copies := 1 << (64 - d.shift - g.depth) // it stands at so many places
		at &^= copies - 1
		t.cursor = at + copies
		progress := g.next.Load() <= units && t.clear(d, g, at, copies, units)
		t.due.pass(g.next.Load())
		if progress {
			return true
		}
	}
	return false
}

// clear forgets the keys of a segment that are fresh, and joins it with its sibling if they have few others.
func (t *table) clear(d *directory, g *segment, at, copies int, now int64) bool {
	freed, live := t.sweepUnlessReplaced(g, now)
	joined := false
	for live <= mostKept/2 && g.depth > 0 { // two that were joined may have a sibling too
		low, high := g, d.segments[at^copies].Load()
		if at&copies != 0 {
			low, high = high, low
		}
		both := t.join(low, high, uint64(at)<<d.shift, now)
		if both == nil {
			break
		}
		g, joined = both, true
		at, copies = at&^copies, 2*copies
	}
	return joined || freed > 0
}

// sweepUnlessReplaced is a sweep of a segment that is in use. It takes the mutex, and returns how many keys are left, too.
func (t *table) sweepUnlessReplaced(g *segment, now int64) (freed int, live int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.replaced.Load() {
		freed = t.sweep(g, now)
	}
	return freed, g.live
}

// join replaces two segments whose keys differ in their last common bit only by one, if they have few keys. hi is of any
// of their keys. It returns nil if they are to stay.
func (t *table) join(low, high *segment, hi uint64, now int64) *segment {
	low.mu.Lock() // all that lock two do so in this order
	defer low.mu.Unlock()
	high.mu.Lock()
	defer high.mu.Unlock()
	if low.replaced.Load() || high.replaced.Load() || low.depth != high.depth {
		return nil
	}
	t.sweep(high, now)
	if t.sweep(low, now); low.live+high.live > mostKept/2 {
		return nil
	}
	both := newSegment(low.depth-1, max(low.swept, high.swept))
	low.moveTo(both, nil)
	high.moveTo(both, nil)
	t.publish(both.depth, hi, both, nil)
	t.due.lower(both.next.Load())
	t.store.room.bytes.Add(-segmentBytes)
	return both
}

// sweep forgets the keys of a segment that are fresh at now, and returns how many. The caller holds the segment's mutex.
func (t *table) sweep(g *segment, now int64) (freed int) {
	if g.next.Load() > now {
		return 0
	}
	// Set first: a word that a refund moves back during the sweep lowers it again.
	g.next.Store(math.MaxInt64)
	next := int64(math.MaxInt64)
	for i := range g.slots {
		s := &g.slots[i]
		if s.lo.Load() == 0 {
			continue
		}
		switch word := s.word.Load(); {
		case word == free:
		case word <= now && s.word.CompareAndSwap(word, free):
			freed++
			g.swept = max(g.swept, word)
			t.drop(s)
		default:
			next = min(next, max(word, now))
		}
	}
	g.lower(next)
	g.live -= int32(freed)
	t.store.reclaimed.Add(int64(freed))
	return freed
}
