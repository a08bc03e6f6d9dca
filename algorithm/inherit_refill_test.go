package algorithm_test

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

// A refill is not due because the limit was another before: limits that change to and fro would mint one each time.
func TestS18RefillsDoNotComeWithAChange(t *testing.T) {
	for _, other := range []string{"sliding-log 12/720h", "25/720h", "fixed-window 25/720h", "concurrent 9 lease=720h", "quota-reset 25/720h", "refill-bucket 5/719h burst=25"} {
		refills, log := program(t, "refill-bucket 5/720h burst=25"), program(t, other)
		now := int64(1_700_000_000_000_000)
		var a algorithm.Account
		took := int64(0)
		for i := range 200 {
			p := refills
			if i%2 == 1 {
				p = log
			}
			var r algorithm.Result
			a, r = a.Apply(p, algorithm.Op{Cost: 1}, now)
			took += r.Granted
			now++
		}
		if took != 25 {
			t.Errorf("%d were admitted within 200 µs under refill-bucket 5/720h burst=25 and %s in turn, want 25", took, other)
		}
	}
}
