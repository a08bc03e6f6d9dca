package algorithm_test

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

func TestNotesTellDaysFrom24Hours(t *testing.T) {
	for text, want := range map[string]string{
		"500/day":                  "500/day begins anew each day at 00:00 UTC; 500/24h is a token bucket, which refills continuously",
		"500/day tz=Europe/Berlin": "",
		"5/week":                   "5/week begins anew each Monday at 00:00 UTC; 5/168h is a token bucket, which refills continuously",
		"5/week anchor=7":          "",
		"500/1d":                   "500/24h is not tied to the calendar; 500/day begins anew each day at 00:00 UTC",
		"sliding-log 3/7d":         "sliding-log 3/168h is not tied to the calendar; 3/week begins anew each Monday at 00:00 UTC",
		"fixed-window 3/168h":      "fixed-window 3/168h is not tied to the calendar; 3/week begins anew each Monday at 00:00 UTC",
		"fixed-window 3/24h":       "", // is 3/day
		"concurrent 3 lease=24h":   "",
		"10000/month":              "",
		"100/1m":                   "",
	} {
		if got := algorithm.MustParseLimit(text).Note(); got != want {
			t.Errorf("%s has the note %q, want %q", text, got, want)
		}
	}
}
