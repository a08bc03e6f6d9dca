// Package latency counts durations in buckets, cheaply enough for every decision of a server.
package latency

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

const (
	// leastBits and buckets are such that the bounds of the buckets are 2^10 to 2^33 ns: about 1 µs to
	// 8.6 s, each twice the one before.
	leastBits, buckets = 10, 24
	// shards keep the cores of a server from waiting for one another's counters.
	shards = 8
)

// A Histogram counts durations. The zero Histogram is empty. It may be used by many goroutines at
// once, without locks or allocations.
type Histogram struct{ shards [shards]shard }

type shard struct {
	counts [buckets + 1]atomic.Uint64 // the last is of durations beyond all bounds
	sum    atomic.Int64               // of nanoseconds
	_      [48]byte                   // to a multiple of a cache line
}

// Observe counts a duration n times.
func (h *Histogram) Observe(d time.Duration, n int64) {
	d = max(d, 0)
	at := 0
	if d > 1<<leastBits {
		at = min(bits.Len64(uint64(d-1))-leastBits, buckets)
	}
	s := &h.shards[rand.Uint32()%shards] //nolint:gosec // nobody gains by guessing it
	s.counts[at].Add(uint64(n))
	s.sum.Add(int64(d) * n)
}

// A Snapshot is the content of a Histogram, in the terms of Prometheus.
type Snapshot struct {
	Count   uint64
	Seconds float64            // the sum of the durations
	Buckets map[float64]uint64 // durations up to a bound, in seconds
}

// Snapshot returns the durations so far. They are read one after another, not at one instant.
func (h *Histogram) Snapshot() Snapshot {
	var counts [buckets + 1]uint64
	var sum float64
	for i := range h.shards {
		for at := range counts {
			counts[at] += h.shards[i].counts[at].Load()
		}
		sum += time.Duration(h.shards[i].sum.Load()).Seconds()
	}
	s := Snapshot{Seconds: sum, Buckets: make(map[float64]uint64, buckets)}
	for at, n := range counts {
		s.Count += n
		if at < buckets {
			s.Buckets[time.Duration(1<<(leastBits+at)).Seconds()] = s.Count
		}
	}
	return s
}

// An Operation is a kind of decision, the same for all protocols.
type Operation uint8

// The operations.
const (
	Take Operation = iota
	TakeUpTo
	TakeAll
	Peek
	Refund
	Cancel
	Renew
	Reserve
	Commit
	Reset
	Check  // by policies
	Settle // a token of a check
	Operations
)

var names = [Operations]string{
	"take", "take_up_to", "take_all", "peek", "refund", "cancel", "renew", "reserve", "commit", "reset", "check", "settle",
}

// String returns the operation's name in the metrics.
func (o Operation) String() string { return names[o] }

var kinds = [...]Operation{
	algorithm.Take: Take, algorithm.TakeUpTo: TakeUpTo, algorithm.Refund: Refund, algorithm.Cancel: Cancel, algorithm.Renew: Renew,
	algorithm.Reserve: Reserve, algorithm.Commit: Commit, algorithm.Reset: Reset,
}

// Of returns the operation of an op.
func Of(op algorithm.Op) Operation {
	if op.Kind == algorithm.Take && op.Cost == 0 {
		return Peek
	}
	return kinds[op.Kind]
}

// Decisions are the durations of decisions, by operation. The zero Decisions are empty.
type Decisions [Operations]Histogram

// Since counts a decision of the time since began.
func (d *Decisions) Since(o Operation, began time.Time) { d[o].Observe(time.Since(began), 1) }

// A Batch counts decisions that are made together, before their duration is known. The zero Batch is
// empty. It is for one goroutine.
type Batch struct {
	size  int
	sizes [Operations]int64
}

// Add adds n decisions.
func (b *Batch) Add(o Operation, n int) {
	b.size += n
	b.sizes[o] += int64(n)
}

// Observe counts the decisions of a batch, each with the time since its begin, and empties the batch.
// An empty batch costs no reading of the clock.
func (d *Decisions) Observe(b *Batch, began time.Time) {
	if b.size == 0 {
		return
	}
	took := time.Since(began)
	for o, n := range b.sizes {
		if n > 0 {
			d[o].Observe(took, n)
		}
	}
	*b = Batch{}
}
