package latency

import (
	"time"

	"github.com/weirlimit/weir/algorithm"
)

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
