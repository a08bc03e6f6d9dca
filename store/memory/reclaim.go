package memory

import (
	"math"
	"sync/atomic"
)

const (
	// mostVisited is the number of segments that a reclaim checks.
	mostVisited = 8
	// mostReclaims is how many times an operation on a full store reclaims memory before its
	// denial.
	mostReclaims = 64
	// pointerBytes is the size of a place in a directory.
	pointerBytes = 8
)

// A reclaimer evicts fresh keys.
type reclaimer interface {
	// dueAt returns a time before which no key of the table is fresh. It is a lower bound, which
	// calls of reclaim raise.
	dueAt() int64
	// reclaim checks a part of the table, the next part with each call, and reports whether it
	// evicted keys or gave memory back. Only one goroutine calls it at a time.
	reclaim(now int64) bool
}

// reclaim checks a part of the tables for keys that are fresh at now, and reports whether it
// evicted any. It costs a few loads while there can be none.
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

// A dueTime is a time before which no key of a table is fresh. A walk visits the table in parts and
// collects the times of the visited parts; at the end of a round their minimum is the due time.
type dueTime struct{ due, passed atomic.Int64 }

func (d *dueTime) init() {
	d.due.Store(math.MaxInt64)
	d.passed.Store(math.MaxInt64)
}

// lower sets the due time to at if it is later. It is called when a key gets this time.
func (d *dueTime) lower(at int64) {
	lowerTo(&d.passed, at) // first: around may be between the two
	lowerTo(&d.due, at)
}

// pass is called with the time of a visited part.
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
		copies := 1 << (64 - d.shift - g.depth) // of the segment in the directory
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

// clear evicts the fresh keys of a segment, and joins the segment with its sibling if both have few
// keys.
func (t *table) clear(d *directory, g *segment, at, copies int, now int64) bool {
	freed, live := t.sweepUnlessReplaced(g, now)
	joined := false
	for live <= mostKept/2 && g.depth > 0 { // a joined segment may have a sibling too
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

// sweepUnlessReplaced is a sweep of a segment in use. It takes the mutex, and also returns the
// number of keys left.
func (t *table) sweepUnlessReplaced(g *segment, now int64) (freed int, live int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.replaced.Load() {
		freed = t.sweep(g, now)
	}
	return freed, g.live
}

// join replaces two segments, whose keys differ in their last common bit only, by a single segment
// if they have few keys. hi is of any of their keys. It returns nil if both stay.
func (t *table) join(low, high *segment, hi uint64, now int64) *segment {
	low.mu.Lock() // the order of all locks of two segments
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

// sweep evicts the keys of a segment that are fresh at now, and returns their number. The caller
// holds the segment's mutex.
func (t *table) sweep(g *segment, now int64) (freed int) {
	if g.next.Load() > now {
		return 0
	}
	// Set first: a refund during the sweep lowers it again.
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
