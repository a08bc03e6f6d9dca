package httplimit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

// The headers of many limits are cached, within a bound, and each limit has its own.
func TestHeadersOfManyLimits(t *testing.T) {
	var c limitHeadersCache
	each := func(many int, count int64) {
		for i := range many {
			name, limit := fmt.Sprint("plan", i), weir.Limit{Algorithm: weir.TokenBucket, Count: count, Period: time.Minute}
			got := c.of(name, limit)
			if want := []string{fmt.Sprintf(`"plan%d";q=%d;w=60`, i, count)}; !slices.Equal(got.policy, want) || got.name != name || got.limit != limit {
				t.Fatalf("%s %v is told as %+v", name, limit, got)
			}
			got.values(&weir.Decision{Allowed: true, Limit: count, Remaining: 7})
		}
	}
	tables := func() (n int) {
		for i := range c.others {
			if kept := c.others[i].Load(); kept != nil && kept.recent != nil {
				n++
			}
		}
		return n
	}
	for _, many := range []int{1, 40, 300, 3 * mostLimits, 300} {
		for _, count := range []int64{600, 601, mostRecent + 1, 600} {
			each(many, count)
			if n := tables(); n != c.tables || n > mostTables {
				t.Errorf("%d limits: values are kept of %d, and counted are %d; accepted: %d", many, n, c.tables, mostTables)
			}
		}
		const some = 300 // few of them have to be made anew
		for range 9 {
			each(some, 600)
		}
		if n := testing.AllocsPerRun(5, func() {
			for i := range some {
				c.of(names[i], weir.Limit{Algorithm: weir.TokenBucket, Count: 600, Period: time.Minute})
			}
		}); n > some/2 {
			t.Errorf("after %d limits %v allocations for %d", many, n, some)
		}
	}
	if tables() == 0 {
		t.Error("values are kept of none")
	}
}

var names = func() (n [300]string) {
	for i := range n {
		n[i] = fmt.Sprint("plan", i)
	}
	return n
}()

// A limit that changes has its values kept as before, however often it does.
func TestValuesAreKeptOfALimitThatChanges(t *testing.T) {
	var c limitHeadersCache
	for i := range int64(3 * mostTables) {
		limit := weir.Limit{Algorithm: weir.TokenBucket, Count: 100 + i, Period: time.Minute}
		if c.of("calls", limit).recent == nil || !c.last.Load().is("calls", limit) {
			t.Fatalf("after %d changes no values are kept", i)
		}
	}
}
