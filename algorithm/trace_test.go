package algorithm_test

import (
	"math"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// A trace draws the times and costs of requests, aimed at the edges that the last decision and the limit make.
type trace struct {
	limit  algorithm.Limit
	now    int64
	last   algorithm.Decision
	rewind bool // time may step back
}

func newTrace(t *rapid.T, l algorithm.Limit, rewind bool) *trace {
	starts := []int64{0, -1, 1_790_000_000_000_000_000, -algorithm.MaxTime, algorithm.MaxTime}
	start := rapid.SampledFrom(starts).Draw(t, "start")
	if rapid.IntRange(0, 3).Draw(t, "any start") == 0 {
		start = rapid.Int64Range(-algorithm.MaxTime, algorithm.MaxTime).Draw(t, "start")
	}
	return &trace{limit: l.Canonical(), now: start, rewind: rewind, last: algorithm.Decision{Remaining: l.Capacity()}}
}

// next moves the time and draws a cost.
func (tr *trace) next(t *rapid.T) (now, cost int64) {
	tr.now = within(tr.now + tr.gap(t))
	return tr.now, tr.cost(t)
}

// within clamps a time to what programs take.
func within(now int64) int64 { return max(-algorithm.MaxTime, min(algorithm.MaxTime, now)) }

func (tr *trace) gap(t *rapid.T) int64 {
	period := min(int64(tr.limit.Period), 1<<60)
	interval := int64(tr.limit.Period) / tr.limit.Count
	upTo := func(most int64) int64 { return rapid.Int64Range(0, most).Draw(t, "gap") }
	kinds := 13
	if tr.rewind {
		kinds = 16
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind of gap") {
	case 0, 1, 2:
		return 0
	case 3:
		return 1
	case 4, 5:
		return wait(tr.last.RetryAfter)
	case 6:
		return max(0, wait(tr.last.RetryAfter)-1)
	case 7:
		return int64(tr.last.ResetAfter)
	case 8:
		return max(0, int64(tr.last.ResetAfter)-1)
	case 9:
		return upTo(min(3*min(interval, 1<<59), period) + 1)
	case 10:
		return upTo(2 * period)
	case 11:
		return period - mod(tr.now, period) - int64(rapid.IntRange(0, 1).Draw(t, "before the edge"))
	case 12:
		return upTo(period)
	case 13:
		return upTo(int64(3 * 365 * day))
	case 14:
		return -upTo(min(3*min(interval, 1<<59), period) + 1)
	case 15:
		return -upTo(2 * period)
	}
	return -upTo(algorithm.MaxTime)
}

func mod(a, b int64) int64 { return ((a % b) + b) % b }

// wait is a RetryAfter as a gap.
func wait(d time.Duration) int64 {
	if d == algorithm.Never {
		return 1
	}
	return int64(d)
}

func (tr *trace) cost(t *rapid.T) int64 {
	capacity := tr.limit.Capacity()
	switch rapid.IntRange(0, 10).Draw(t, "kind of cost") {
	case 0:
		return 0
	case 1, 2, 3:
		return 1
	case 4, 5:
		return tr.last.Remaining
	case 6:
		return min(tr.last.Remaining, math.MaxInt64-1) + 1
	case 7:
		return capacity
	case 8:
		return min(capacity, math.MaxInt64-1) + 1
	case 9:
		return rapid.Int64Range(0, capacity).Draw(t, "cost")
	}
	return anySize(t, "cost")
}
