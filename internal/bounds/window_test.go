package bounds

import (
	"math"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func TestWindow(t *testing.T) {
	for text, want := range map[string]uint64{
		"100/1m": 199, "100/1m burst=5": 104, "min-interval 10/1s": 10, "leaky-queue 4/1s queue=9": 4,
		"sliding-buckets 3/1m": 3, "refill-bucket 50/24h burst=200": 249, "500/day": 1000, "concurrent 3 lease=1s": 3,
		"fixed-window 9223372036854775807/1m": 2 * math.MaxInt64,
	} {
		if got, formula := Window(algorithm.MustParseLimit(text)); got != want {
			t.Errorf("%s admits %d (%s) in a window, want %d", text, got, formula, want)
		}
	}
}

// The search finds as many units as Window returns, also at sizes beyond the table.
func TestWindowIsWhatTheSearchFinds(t *testing.T) {
	for _, text := range []string{
		"2/6ns burst=3", "gcra 3/6ns burst=1", "leaky-queue 2/6ns queue=1", "min-interval 2/6ns", "refill-bucket 2/6ns burst=3",
		"refill-bucket 5/6ns burst=3", "refill-bucket 3/6ns burst=1", "fixed-window 2/6ns", "quota-reset 4/6ns", "sliding-log 2/6ns",
		"sliding-window 2/6ns", "sliding-buckets 2/6ns cells=2", "hybrid 2/6ns", "hybrid 1/6ns", "concurrent 2 lease=6ns",
	} {
		s, err := newSearch(text)
		if err != nil {
			t.Fatal(err)
		}
		limit := s.program.Limit()
		found := s.most(1, limit.Algorithm == algorithm.LeakyQueue, s.width)[s.width-1]
		if got, formula := Window(limit); got != uint64(found) {
			t.Errorf("%s admits %d units in a window; Window returns %d (%s)", text, found, got, formula)
		}
	}
}

func TestWordsAreWhatAClientFills(t *testing.T) {
	for _, c := range claims() {
		limit := algorithm.Limit{Algorithm: c.algorithm, Count: 100, Period: time.Minute}
		want, err := words(limit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Words(limit); err != nil || got != int64(want) {
			t.Errorf("%s has %d words, %v; a client fills %d", c.algorithm, got, err, want)
		}
	}
}
