package memory

import (
	"math"
	"sync"
	"sync/atomic"
)

const (
	// slotCount makes a segment exactly as large as one of the sizes that Go allocates, 12 KiB.
	slotCount = 510
	// mostUsed is how many slots of a segment may be taken before it is rebuilt or split.
	mostUsed = slotCount * 3 / 4
	// mostKept is how many live keys a rebuilt segment may start with; with more it is split.
	mostKept = mostUsed * 3 / 5
	// mostPacked is how many live keys a rebuilt segment may start with if there is no memory for a
	// split.
	mostPacked = mostUsed - mostUsed/16
	// mostCrammed is how many slots may be taken by keys of small owners while memory is scarce.
	// Otherwise a key could cost a segment.
	mostCrammed = slotCount * 9 / 10
	// segmentBytes is the size of a segment.
	segmentBytes = 12 << 10
	// slotBytes is the size of a key in a segment for its owner: its part of a segment after a
	// split. The segments themselves are counted once, for nobody.
	slotBytes = segmentBytes / (mostUsed / 2)
)

// Words that are not times.
const (
	moved = math.MinInt64     // the segment was replaced: look the key up again
	free  = math.MinInt64 + 1 // the slot's key was forgotten; the slot waits for the same key
)

// A slot belongs to one key for as long as its segment lives, so that whoever found it may compare and swap
// its word without a lock. It is empty while lo is 0.
type slot struct {
	lo   atomic.Uint64 // set last, when hi and word are
	hi   uint64
	word atomic.Int64
}

// A segment is an open-addressed part of a table. Readers probe it and swap words without a lock; the mutex is
// for adding and forgetting keys.
type segment struct {
	slots [slotCount]slot

	mu       sync.Mutex
	used     int32        // slots that are not empty
	live     int32        // slots whose key was not forgotten
	depth    uint8        // how many leading bits of hi its keys have in common
	replaced atomic.Bool  // no longer part of the table
	next     atomic.Int64 // no live word is earlier than this, in units: nothing to reclaim before
	swept    int64        // the latest word that was forgotten: what a key that is not here may have had
}

func newSegment(depth uint8, swept int64) *segment {
	g := &segment{depth: depth, swept: swept}
	g.next.Store(math.MaxInt64)
	return g
}

// home returns the slot at which the search for a fingerprint starts.
func (g *segment) home(fp fingerprint) *slot {
	return &g.slots[uint64(uint32(fp.hi))*slotCount>>32]
}

// probe returns the slot of the fingerprint, or, if it has none, the empty slot where it would go.
func (g *segment) probe(fp fingerprint) (s *slot, found bool) {
	i := uint64(uint32(fp.hi)) * slotCount >> 32
	for {
		s = &g.slots[i]
		switch s.lo.Load() {
		case fp.lo:
			if s.hi == fp.hi {
				return s, true
			}
		case 0:
			return s, false
		}
		if i++; i == slotCount {
			i = 0
		}
	}
}

// add puts a fingerprint that has no slot into the segment. The caller holds the mutex, or the only reference.
func (g *segment) add(s *slot, fp fingerprint, word int64) {
	s.hi = fp.hi
	s.word.Store(word)
	s.lo.Store(fp.lo)
	g.used++
	g.live++
	if word < g.next.Load() {
		g.next.Store(word)
	}
}

// lower makes sure that the segment is swept when a word of this time is due.
func (g *segment) lower(next int64) {
	for {
		old := g.next.Load()
		if old <= next || g.next.CompareAndSwap(old, next) {
			return
		}
	}
}
