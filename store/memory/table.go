package memory

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
)

// A table maps fingerprints to words of one unit. It is an extendible hash: a directory, indexed with leading
// bits of the fingerprint, of segments that are split in two when they are full of live keys. So no operation ever
// touches more than one segment, and growing from one key to a billion has no pause longer than a split.
type table struct {
	store  *Store
	word   algorithm.Word // for its units only
	dir    atomic.Pointer[directory]
	growth sync.Mutex // for changing the directory
	cursor atomic.Uint64
}

type directory struct {
	shift    uint8 // of hi, to index segments
	segments []atomic.Pointer[segment]
}

func newTable(s *Store, word algorithm.Word) *table {
	t := &table{store: s, word: word}
	first := newSegment(0, math.MinInt64)
	d := &directory{shift: 64, segments: make([]atomic.Pointer[segment], 1)}
	d.segments[0].Store(first)
	t.dir.Store(d)
	return t
}

func (t *table) segment(fp fingerprint) *segment {
	d := t.dir.Load()
	return d.segments[fp.hi>>d.shift].Load()
}

// A change is a step from the word that stands for a key to the next one; the same word means: leave it, and
// free means: forget the key.
type change func(word int64) (next int64)

// An outcome is how an update ended.
type outcome uint8

const (
	kept    outcome = iota // the key was there
	absent                 // the key is not there, and need not be
	added                  // the key was added
	missing                // the key is not there and would be added, but mayAdd was false
)

// update carries out a change under the lock of the key's segment: for all that is not a plain swap of a word.
// A key that is not in the table stands at the latest word that was forgotten, so that time that steps back does not
// make a key new that was not.
func (t *table) update(fp fingerprint, now int64, mayAdd bool, step change) outcome {
	for {
		if o, done := t.updateIn(t.segment(fp), fp, now, mayAdd, step); done {
			return o
		}
	}
}

func (t *table) updateIn(g *segment, fp fingerprint, now int64, mayAdd bool, step change) (o outcome, done bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replaced.Load() {
		return kept, false
	}
	s, found := g.probe(fp)
	if found && t.swap(g, s, step) {
		return kept, true
	}
	next := step(g.swept)
	switch {
	case next == g.swept || next == free:
		return absent, true
	case !mayAdd:
		return missing, true
	case found:
		s.word.Store(next)
		g.lower(next)
	case g.used >= mostUsed:
		t.renew(g, fp.hi, now)
		return kept, false
	default:
		g.add(s, fp, next)
	}
	return added, true
}

// swap carries out a change on a key's word, unless the key was forgotten. The caller holds the segment's mutex.
func (t *table) swap(g *segment, s *slot, step change) bool {
	for {
		word := s.word.Load()
		if word == free {
			return false
		}
		next := step(word)
		if next != word && !s.word.CompareAndSwap(word, next) {
			continue
		}
		if next == free {
			t.store.keys.Add(-1)
		} else {
			g.lower(next)
		}
		return true
	}
}

// renew replaces a segment that has no slots left: by one without the keys that are fresh at now, or by two. The
// caller holds the segment's mutex; hi is of any of its keys.
func (t *table) renew(g *segment, hi uint64, now int64) {
	t.store.forget(g.sweep(now))
	live := 0
	for i := range g.slots {
		if s := &g.slots[i]; s.lo.Load() != 0 && s.word.Load() != free {
			live++
		}
	}
	depth := g.depth
	if live > mostKept {
		depth++
	}
	low, high := newSegment(depth, g.swept), (*segment)(nil)
	if depth > g.depth {
		high = newSegment(depth, g.swept)
	}
	for i := range g.slots {
		s := &g.slots[i]
		if s.lo.Load() == 0 {
			continue
		}
		// From here on whoever wants this word waits for the lock, and finds the new segment.
		word := s.word.Swap(moved)
		if word == free {
			continue
		}
		fp, to := fingerprint{hi: s.hi, lo: s.lo.Load()}, low
		if high != nil && fp.hi>>(64-depth)&1 == 1 {
			to = high
		}
		empty, _ := to.probe(fp)
		to.add(empty, fp, word)
	}
	g.replaced.Store(true)
	t.publish(g.depth, hi, low, high)
}

// publish puts one or two segments in the place of the one of this depth that the fingerprint hi belongs to.
func (t *table) publish(depth uint8, hi uint64, low, high *segment) {
	t.growth.Lock()
	defer t.growth.Unlock()
	d := t.dir.Load()
	if low.depth > 64-d.shift {
		d = d.doubled()
		defer t.dir.Store(d)
	}
	// The segment stands at all indexes that begin with its bits.
	copies := uint64(1) << (64 - d.shift - depth)
	first := (hi >> d.shift) &^ (copies - 1)
	for i := range copies {
		to := low
		if high != nil && i >= copies/2 {
			to = high
		}
		d.segments[first+i].Store(to)
	}
}

func (d *directory) doubled() *directory {
	twice := &directory{shift: d.shift - 1, segments: make([]atomic.Pointer[segment], 2*len(d.segments))}
	for i := range twice.segments {
		twice.segments[i].Store(d.segments[i/2].Load())
	}
	return twice
}

// mostVisited is how many segments one call of reclaim looks at.
const mostVisited = 64

// sweepUnlessReplaced is a sweep of a segment that is in use. It takes the mutex.
func (g *segment) sweepUnlessReplaced(units int64) (freed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.replaced.Load() {
		return 0
	}
	return g.sweep(units)
}

// reclaim implements reclaimer.
func (t *table) reclaim(now int64) (freed int, next int64) {
	units, ok := t.word.Units(now)
	if !ok {
		return 0, math.MaxInt64
	}
	next = math.MaxInt64
	segments := t.dir.Load().segments
	for range min(mostVisited, len(segments)) {
		g := segments[t.cursor.Add(1)%uint64(len(segments))].Load()
		if g.next.Load() <= units {
			if freed = g.sweepUnlessReplaced(units); freed > 0 { // the next call goes on from here
				break
			}
		}
		next = min(next, g.next.Load())
	}
	t.store.forget(freed)
	if next == math.MaxInt64 {
		return freed, next
	}
	return freed, t.word.Time(next)
}
