package replay

import (
	"fmt"
	"time"
)

const (
	chosenBuckets = 60     // the most of a width that is chosen
	givenBuckets  = 10_000 // the most of a width that is given
	maxBucket     = 3640 * 24 * time.Hour
)

// A timeline counts requests in buckets of equal width on a grid from the Unix epoch.
type timeline struct {
	width   int64 // seconds
	chosen  bool  // the width grows with the log
	begin   int64 // of the first bucket, in widths since the Unix epoch
	buckets []bucket
	limits  int
}

type bucket struct {
	requests int64
	denied   []int64 // by limit
}

func newTimeline(width time.Duration, limits int) timeline {
	if width == 0 {
		return timeline{width: 1, chosen: true, limits: limits}
	}
	return timeline{width: int64(width / time.Second), limits: limits}
}

// bucket returns the bucket of a second that is not before any that was asked for.
func (t *timeline) bucket(second int64) (*bucket, error) {
	if len(t.buckets) == 0 {
		t.begin = floorDiv(second, t.width)
	}
	most := givenBuckets
	if t.chosen {
		most = chosenBuckets
		for floorDiv(second, t.width)-t.begin >= chosenBuckets {
			t.widen()
		}
	}
	index := floorDiv(second, t.width) - t.begin
	if index >= int64(most) {
		return nil, fmt.Errorf("replay: bucket is %v, which makes more than %d of them until %v; accepted: a wider one, or 0s to have it chosen",
			time.Duration(t.width)*time.Second, most, at(second))
	}
	for int64(len(t.buckets)) <= index {
		t.buckets = append(t.buckets, bucket{denied: make([]int64, t.limits)})
	}
	return &t.buckets[index], nil
}

// widen folds the buckets into those of the next width.
func (t *timeline) widen() {
	width := wider(t.width)
	var folded []bucket
	begin := floorDiv(t.begin*t.width, width)
	for i, b := range t.buckets {
		index := floorDiv((t.begin+int64(i))*t.width, width) - begin
		if index == int64(len(folded)) {
			folded = append(folded, b)
			continue
		}
		into := &folded[index]
		into.requests += b.requests
		for limit, n := range b.denied {
			into.denied[limit] += n
		}
	}
	t.width, t.begin, t.buckets = width, begin, folded
}

// wider returns the width after this one. Each is a multiple of the one before.
func wider(width int64) int64 {
	const minute, hour, day = 60, 3600, 86400
	for _, w := range []int64{
		1, 2, 10, 30, minute, 2 * minute, 10 * minute, 30 * minute,
		hour, 2 * hour, 6 * hour, 12 * hour, day, 7 * day, 28 * day, 364 * day,
	} {
		if w > width {
			return w
		}
	}
	return int64(maxBucket / time.Second)
}

func (t *timeline) report() []BucketReport {
	list := make([]BucketReport, len(t.buckets))
	for i, b := range t.buckets {
		list[i] = BucketReport{Start: at((t.begin + int64(i)) * t.width), Requests: b.requests, Denied: b.denied}
	}
	return list
}

// floorDiv rounds towards minus infinity.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
