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
	due    dueTime    // in units
	cursor int        // index of the next segment to check; guarded by the store's reclaiming
}

type directory struct {
	shift    uint8 // of hi, to index segments
	segments []atomic.Pointer[segment]
}

func newTable(s *Store, word algorithm.Word) *table {
	t := &table{store: s, word: word}
	t.due.init()
	first := newSegment(0, math.MinInt64)
	s.room.bytes.Add(segmentBytes) // without a bound: there are few tables
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
	kept   outcome = iota // the key was there
	absent                // the key is not there, and need not be
	added                 // the key was added
	// the key is not there and would be added, but mayAdd was false or there is no memory.
	missing
	cramped // the key was there, and there is no memory for its account
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
		g.live++
		g.lower(next)
	case g.used >= t.store.mostUsed(fp):
		if !t.renew(g, fp.hi, now) {
			return missing, true
		}
		return kept, false
	default:
		g.add(s, fp, next)
	}
	t.due.lower(next)
	return added, true
}

// mostUsed returns how many slots of a segment may be taken before a key is added.
func (s *Store) mostUsed(fp fingerprint) int32 {
	available := s.room.maxBytes - s.room.bytes.Load()
	if available < s.room.maxBytes/4 && s.owners.of(fp.lo).bytes.Load() < available/2 {
		return mostCrammed
	}
	return mostUsed
}

// hasRoom reports whether a key could be added to its segment.
func (t *table) hasRoom(fp fingerprint, now int64) bool {
	g := t.segment(fp)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used < t.store.mostUsed(fp) {
		return true
	}
	t.sweep(g, now)
	return g.live <= mostPacked || t.store.room.bytes.Load()+segmentBytes <= t.store.room.maxBytes
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
			g.live--
			t.drop(s)
		} else if next < word {
			g.lower(next)
			t.due.lower(next)
		}
		return true
	}
}

// drop counts an evicted key.
func (t *table) drop(s *slot) {
	o := t.store.owners.of(s.lo.Load())
	t.store.room.dropKey(o)
	o.bytes.Add(-slotBytes)
}

// renew replaces a segment without free slots: by a segment without fresh keys, or by two. It
// returns false if there is no memory for a second segment, and too many live keys for a single
// one. The caller holds the segment's mutex; hi is of any of its keys.
func (t *table) renew(g *segment, hi uint64, now int64) bool {
	t.sweep(g, now)
	split := g.live > mostKept && t.store.room.growCommon(segmentBytes)
	if !split && g.live > mostPacked {
		return false
	}
	depth := g.depth
	if split {
		depth++
	}
	low, high := newSegment(depth, g.swept), (*segment)(nil)
	if split {
		high = newSegment(depth, g.swept)
	}
	g.moveTo(low, high)
	t.publish(g.depth, hi, low, high)
	t.due.lower(low.next.Load())
	if high != nil {
		t.due.lower(high.next.Load())
	}
	return true
}

// moveTo moves the live keys of a segment, by their next bit if there are two targets, and retires
// the segment. The caller holds the mutex.
func (g *segment) moveTo(low, high *segment) {
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
		if high != nil && fp.hi>>(64-high.depth)&1 == 1 {
			to = high
		}
		empty, _ := to.probe(fp)
		to.add(empty, fp, word)
	}
	g.replaced.Store(true)
}

// publish puts one or two segments in the place of the one of this depth that the fingerprint hi belongs to.
func (t *table) publish(depth uint8, hi uint64, low, high *segment) {
	t.growth.Lock()
	defer t.growth.Unlock()
	d := t.dir.Load()
	if low.depth > 64-d.shift {
		t.store.room.bytes.Add(pointerBytes * int64(len(d.segments))) // little beside the segments
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
