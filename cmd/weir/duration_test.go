package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

// Flags take the periods of limits as durations.
func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "-1s": -time.Second, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "31d": 31 * day, "2hours": 2 * time.Hour,
		"day": day, "week": 7 * day, "min": time.Minute,
	} {
		if got, err := parseDuration(text); got != want || err != nil {
			t.Errorf("%q is %v, error %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "5", "month", "1s burst=2", "1s/2", "1.5d"} {
		if got, err := parseDuration(text); err == nil || !strings.Contains(err.Error(), "accepted: a duration such as") {
			t.Errorf("%q is %v, error %v", text, got, err)
		}
	}
}

// A sentence about a limit of one unit has its nouns in the singular.
func TestMeaningOfOneUnit(t *testing.T) {
	for text, want := range map[string]string{
		"1/1s": "a bucket of 1 token starts", "11/1s": "a bucket of 11 tokens starts", "fixed-window 1/1s": "at most 1 unit passes in",
		"concurrent 1 lease=1s": "at most 1 unit is in flight", "leaky-bucket 1/1s": "a bucket holds 1 unit and",
	} {
		if got := meaning(weir.MustParseLimit(text)); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
