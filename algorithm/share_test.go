package algorithm_test

import (
	"errors"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestSharesKeepTheBoundTogether runs n processes, each with a share of 1/n of a limit. Together they
// admit at most the bound of the limit in every window.
func TestSharesKeepTheBoundTogether(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		n := rapid.Int64Range(1, 8).Draw(t, "processes")
		share, err := l.Share(1, n)
		if err != nil {
			if n == 1 || l.Canonical().Algorithm != algorithm.MinInterval && l.Capacity() > 2*n && l.Count >= n {
				t.Fatalf("%v has no share of 1/%d: %v", l, n, err)
			}
			return
		}
		p, tr := compile(t, share), newTrace(t, l, false)
		states := make([][]int64, n)
		var admitted journal
		for range steps {
			now, cost := tr.next(t)
			process := rapid.Int64Range(0, n-1).Draw(t, "process")
			var r algorithm.Result
			states[process], r = p.Apply(states[process], algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}, now)
			tr.last = r.Decision
			if r.Granted > 0 {
				admitted.note(admitted.newest(now), r.Granted)
			}
		}
		for i := range admitted {
			total := new(big.Rat)
			for _, e := range admitted[i:] {
				total.Add(total, rat(e.cost))
				from, to := admitted[i].at, e.at
				if most, stated := boundBetween(l.Canonical(), from, to); stated && less(most, total) {
					t.Fatalf("%d processes under %v: %v units within %d ns, more than %v of %v", n, share, total, to-from, most, l)
				}
			}
		}
	})
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		limit       string
		part, whole int64
		want        string
	}{
		{"100/1m", 1, 4, "25/1m"},
		{"100/1m", 250_000, 1_000_000, "25/1m"},
		{"10/1m", 1, 4, "2/1m"}, // rounded down
		{"10/1m", 1, 1, "10/1m"},
		{"gcra 100/1m burst=7", 1, 2, "gcra 50/1m burst=3"},
		{"3/1m burst=20", 1, 4, "1/1m20s burst=5"}, // 0.75 per minute
		{"leaky-queue 100/1s queue=9", 1, 5, "leaky-queue 20/1s queue=1"},
		{"cooldown 5/1m", 1, 5, "cooldown 1/1m"},
		{"refill-bucket 10/1h burst=20", 3, 10, "refill-bucket 3/1h burst=6"},
		{"sliding-buckets 10/1m cells=7", 1, 2, "sliding-buckets 5/1m cells=7"},
		{"exponential 10/1m strict", 1, 2, "exponential 5/1m strict"},
		{"500/day tz=Europe/Berlin anchor=15", 1, 3, "166/day tz=Europe/Berlin anchor=15"},
		{"concurrent 10 lease=30s", 1, 3, "concurrent 3 lease=30s"},
		{"9223372036854775807/1h burst=1000", 1, 1000, "9223372036854775/1h burst=1"},
	} {
		got, err := algorithm.MustParseLimit(c.limit).Share(c.part, c.whole)
		if err != nil || got.String() != c.want {
			t.Errorf("%d/%d of %s is %v, %v; want %s", c.part, c.whole, c.limit, got, err, c.want)
		}
		if back, err := algorithm.ParseLimit(got.String()); err != nil || back != got {
			t.Errorf("%v reads as %v, %v", got, back, err)
		}
	}
}

func TestSharesThatThereAreNot(t *testing.T) {
	for _, c := range []struct {
		limit       string
		part, whole int64
		field, want string
	}{
		{"3/1m", 1, 4, "burst", "weir: limit has burst 3; accepted: 4 or more, for a share of 25%"},
		{"1/1m burst=3", 1, 4, "burst", "weir: limit has burst 3; accepted: 4 or more, for a share of 25%"},
		{"fixed-window 3/1m", 1, 4, "count", "weir: limit has count 3; accepted: 4 or more, for a share of 25%"},
		{"refill-bucket 3/1m burst=9", 1, 4, "count", "weir: limit has count 3; accepted: 4 or more, for a share of 25%"},
		{"concurrent 1 lease=1s", 1, 2, "count", "weir: limit has count 1; accepted: 2 or more, for a share of 50%"},
		{"2/day", 1, 3, "count", "weir: limit has count 2; accepted: 3 or more, for a share of 33.3333%"},
		{"cooldown 3/1m", 1, 4, "count", "weir: limit has count 3; accepted: 4 or more, for a share of 25%"},
		{"leaky-queue 8/1m queue=6", 1, 4, "queue", "weir: limit has queue 6; accepted: 7 or more, for a share of 25%"},
		{"min-interval 100/1m", 1, 2, "algorithm", "weir: limit has algorithm min-interval; accepted: one that admits 2 units or more at once, for a share of 50%"},
		{"100/1m", 0, 4, "share", "weir: limit has share 0/4; accepted: more than 0, up to 1"},
		{"100/1m", 5, 4, "share", "weir: limit has share 5/4; accepted: more than 0, up to 1"},
		{"100/1m", -1, -2, "share", "weir: limit has share -1/-2; accepted: more than 0, up to 1"},
		{"100/1m", 1, math.MaxInt64, "burst", "weir: limit has burst 100; accepted: 9223372036854775807 or more, for a share of 1.0842e-17%"},
	} {
		got, err := algorithm.MustParseLimit(c.limit).Share(c.part, c.whole)
		var refused *algorithm.LimitError
		if !errors.As(err, &refused) || refused.Field != c.field || err.Error() != c.want {
			t.Errorf("%d/%d of %s is %v, %v; want the error %s", c.part, c.whole, c.limit, got, err, c.want)
		}
	}
}

// A limit of a literal with an odd period has shares too.
func TestShareOfALiteral(t *testing.T) {
	got, err := algorithm.Limit{Count: 1, Period: time.Second, Burst: 3}.Share(1, 3)
	if err != nil || got.Count != 1 || got.Period != 3*time.Second || got.Burst != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
