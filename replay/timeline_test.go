package replay

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheChosenWidthKeepsEveryCountAndFewBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reach := rapid.SampledFrom([]int64{1, 100, 100_000, 1_000_000_000}).Draw(t, "reach")
		seconds := rapid.SliceOfN(rapid.Int64Range(-reach, reach), 1, 200).Draw(t, "seconds")
		slices.Sort(seconds)
		line := newTimeline(0, 1)
		for i, s := range seconds {
			b, err := line.bucket(s)
			if err != nil {
				t.Fatal(err)
			}
			b.requests++
			b.denied[0] += int64(i % 2)
		}
		want := map[int64]BucketReport{}
		for i, s := range seconds {
			start := floorDiv(s, line.width) * line.width
			b := want[start]
			if b.Denied == nil {
				b.Denied = []int64{0}
			}
			b.Requests++
			b.Denied[0] += int64(i % 2)
			want[start] = b
		}
		report := line.report()
		if len(report) > chosenBuckets {
			t.Fatalf("%d buckets of %d s", len(report), line.width)
		}
		filled := 0
		for i, b := range report {
			if i > 0 && b.Start.Sub(report[i-1].Start) != time.Duration(line.width)*time.Second {
				t.Fatalf("%v after %v", b.Start, report[i-1].Start)
			}
			if b.Requests == 0 {
				continue
			}
			filled++
			if w := want[b.Start.Unix()]; w.Requests != b.Requests || w.Denied[0] != b.Denied[0] {
				t.Fatalf("%v: got %+v, want %+v", b.Start, b, w)
			}
		}
		if filled != len(want) {
			t.Fatalf("%d buckets with requests, want %d", filled, len(want))
		}
	})
}

func TestAWidthIsAMultipleOfTheOneBefore(t *testing.T) {
	last := int64(maxBucket / time.Second)
	for w := int64(1); w < last; w = wider(w) {
		if wider(w)%w != 0 || wider(w) <= w {
			t.Errorf("%d after %d", wider(w), w)
		}
	}
}

func TestAGivenWidthIsKept(t *testing.T) {
	line := newTimeline(time.Second, 1)
	for _, s := range []int64{5, givenBuckets + 4} {
		if _, err := line.bucket(s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := line.bucket(givenBuckets + 5); err == nil {
		t.Error("more buckets than the most")
	}
	if len(line.buckets) != givenBuckets {
		t.Errorf("%d buckets", len(line.buckets))
	}
}
