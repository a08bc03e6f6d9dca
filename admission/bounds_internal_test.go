package admission

import (
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

// The texts of the limits of many plans are not written for each request, and more limits than fit are written correctly.
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
	for range 9 { // almost all find a place; a few may share theirs, by chance
		all(some)()
	}
	made := testing.AllocsPerRun(100, func() {
		for i := range int64(some) {
			n.of(weir.Limit{Algorithm: weir.TokenBucket, Count: i + 1, Period: time.Second})
		}
	})
	if made > some/10 {
		t.Errorf("%v allocations for %d limits", made, some)
	}
}
