package admission

import (
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

// Limits of many plans are told without writing their texts each time, and those of more than are kept by their own.
func TestTextsOfManyLimits(t *testing.T) {
	var n names
	all := func(many int64) func() {
		return func() {
			for i := range many {
				limit := weir.Limit{Algorithm: weir.TokenBucket, Count: i + 1, Period: time.Second}
				if kept := n.of(limit); kept.limit != limit || kept.text != limit.String() || kept.capacity != i+1 {
					t.Fatalf("%v is kept as %+v", limit, kept)
				}
			}
		}
	}
	all(3 * mostNames)()
	const some = 300
	for range 9 { // until each has found its place
		all(some)()
	}
	// an average, which hides other allocations
	made := testing.AllocsPerRun(100, func() {
		for i := range int64(some) {
			n.of(weir.Limit{Algorithm: weir.TokenBucket, Count: i + 1, Period: time.Second})
		}
	})
	if made > 0 {
		t.Errorf("%v allocations for %d limits", made, some)
	}
}
