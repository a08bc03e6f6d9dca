package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A lease that is not renewed for want of room is denied, also where the key owes.
func TestRenewOfAKeyThatOwes(t *testing.T) {
	p := program(t, "concurrent 5 lease=1s")
	const now = int64(1_700_000_000_000_000)
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, ID: 1, Life: 2_000_000}, now)
	a, _ = a.Apply(p, algorithm.Op{Cost: 5}, now)
	a, _ = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, ID: 1, Cost: 3}, now+1)
	a, r := a.Apply(p, algorithm.Op{Kind: algorithm.Renew, Cost: 2, End: now + 9}, now+2) // of no lease
	if v := r.Verdict(); v.Granted != -1 || v.Remaining != 0 || v.Wait != time.Second-2*time.Microsecond {
		t.Errorf("a renewal for which there is no room: %+v", v)
	}
	a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Renew, Cost: 5, End: now + 1_000_000}, now+2)
	if v := r.Verdict(); v.Granted != 5 || v.Remaining != 0 {
		t.Errorf("a renewal in place of what is held: %+v", v)
	}
	if _, r = a.Apply(p, algorithm.Op{Cost: 1}, now+2); r.Allowed {
		t.Errorf("a take while the key owes: %+v", r)
	}
}
