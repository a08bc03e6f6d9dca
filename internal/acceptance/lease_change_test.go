package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
)

// The length of the leases changes while places are held. Each release frees its place at once,
// before and after renewals.
func TestLeasesAreReleasedAfterAChangeOfTheirLength(t *testing.T) {
	for _, change := range [][]string{
		{"concurrent 3 lease=1s", "concurrent 3 lease=5s"},
		{"concurrent 3 lease=5s", "concurrent 3 lease=1s"},
		{"concurrent 3 lease=1m", "concurrent 3 lease=1s", "concurrent 3 lease=10s", "concurrent 3 lease=1h", "concurrent 3 lease=2s"},
	} {
		for _, wait := range []time.Duration{0, 100 * time.Millisecond, 4 * time.Second, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				l := limiter(t, change[0], weir.WithName("jobs"))
				first := acquire(t, l, 1)
				for _, text := range change[1:] {
					setLimit(t, l, text)
					other := acquire(t, l, 1) // the state changes to the new limit
					time.Sleep(wait)
					if n := free(t, l); n != 1 {
						t.Fatalf("%v, %v after the change to %s: %d places are free, want 1", change, wait, text, n)
					}
					release(t, other)
				}
				third := acquire(t, l, 2)
				release(t, first)
				if n := free(t, l); n != 1 {
					t.Errorf("%v, after %v: %d places are free, want 1", change, wait, n)
				}
				release(t, third)
				if n := free(t, l); n != 3 {
					t.Errorf("%v, after %v: %d places are free after all releases, want 3", change, wait, n)
				}
			})
		}
	}
}
