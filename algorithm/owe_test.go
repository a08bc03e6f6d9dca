package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// TestOweIsALateCommit: a debt leaves the units that a late commit leaves, from the next operation
// on, also of a key never seen and of one that has a debt already.
func TestOweIsALateCommit(t *testing.T) {
	for _, text := range []string{"10/1m", "fixed-window 10/1m", "sliding-log 10/1m", "sliding-window 10/1m"} {
		p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		const now = 1_700_000_000_000_000_000
		for _, costs := range [][]int64{{3}, {2, 4}, {8, 5}} {
			var late, owing algorithm.Account
			for i, cost := range costs {
				late, _ = late.Apply(p, algorithm.Op{Kind: algorithm.Commit, Late: true, Cost: cost, ID: int64(i + 1)}, now)
				owing = owing.Owe(p, cost, now)
			}
			_, want := late.Apply(p, algorithm.Op{}, now)
			if _, got := owing.Apply(p, algorithm.Op{}, now); got != want {
				t.Errorf("%s after %v: %+v, want %+v", text, costs, got, want)
			}
			_, want = late.Apply(p, algorithm.Op{Cost: 5}, now+1)
			if _, got := owing.Apply(p, algorithm.Op{Cost: 5}, now+1); got.Allowed != want.Allowed {
				t.Errorf("%s after %v: %+v, want %+v", text, costs, got, want)
			}
		}
	}
}
