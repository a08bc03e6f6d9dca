package algorithm_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

func TestLimitTextRoundTrips(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	for text, want := range map[string]algorithm.Limit{
		"100/1m":                         {Algorithm: algorithm.TokenBucket, Count: 100, Period: minute, Burst: 100},
		"gcra 10/1s burst=20":            {Algorithm: algorithm.GCRA, Count: 10, Period: time.Second, Burst: 20},
		"leaky-bucket 4/1s":              {Algorithm: algorithm.LeakyBucket, Count: 4, Period: time.Second, Burst: 4},
		"cooldown 3/1m":                  {Algorithm: algorithm.Cooldown, Count: 3, Period: minute},
		"min-interval 10/1s":             {Algorithm: algorithm.MinInterval, Count: 10, Period: time.Second},
		"leaky-queue 4/1s queue=10":      {Algorithm: algorithm.LeakyQueue, Count: 4, Period: time.Second, Queue: 10},
		"refill-bucket 50/24h burst=200": {Algorithm: algorithm.RefillBucket, Count: 50, Period: 24 * hour, Burst: 200},
		"fixed-window 1000/1h":           {Algorithm: algorithm.FixedWindow, Count: 1000, Period: hour},
		"quota-reset 1000/1h":            {Algorithm: algorithm.QuotaReset, Count: 1000, Period: hour},
		"sliding-log 3/1m":               {Algorithm: algorithm.SlidingLog, Count: 3, Period: minute},
		"sliding-window 100/1m":          {Algorithm: algorithm.SlidingWindow, Count: 100, Period: minute},
		"sliding-buckets 100/1m":         {Algorithm: algorithm.SlidingBuckets, Count: 100, Period: minute, Cells: 60},
		"sliding-buckets 100/1m cells=6": {Algorithm: algorithm.SlidingBuckets, Count: 100, Period: minute, Cells: 6},
		"hybrid 10/10s":                  {Algorithm: algorithm.Hybrid, Count: 10, Period: 10 * time.Second},
		"exponential 100/1h":             {Algorithm: algorithm.Exponential, Count: 100, Period: hour},
		"exponential 100/1h strict":      {Algorithm: algorithm.Exponential, Count: 100, Period: hour, Strict: true},
		"10000/month":                    {Algorithm: algorithm.Calendar, Count: 10000, Period: 30 * day, Unit: algorithm.Month, Zone: "UTC", Anchor: 1},
		"500/day tz=Europe/Berlin anchor=15": {
			Algorithm: algorithm.Calendar, Count: 500, Period: day, Unit: algorithm.Day, Zone: "Europe/Berlin", Anchor: 15,
		},
		"5/week anchor=7":         {Algorithm: algorithm.Calendar, Count: 5, Period: 7 * day, Unit: algorithm.Week, Zone: "UTC", Anchor: 7},
		"1/year anchor=04-06":     {Algorithm: algorithm.Calendar, Count: 1, Period: 365 * day, Unit: algorithm.Year, Zone: "UTC", Anchor: 406},
		"concurrent 10 lease=30s": {Algorithm: algorithm.Concurrent, Count: 10, Period: 30 * time.Second},
		"7/1h30m":                 {Algorithm: algorithm.TokenBucket, Count: 7, Period: 90 * minute, Burst: 7},
		"7/1.5s burst=9":          {Algorithm: algorithm.TokenBucket, Count: 7, Period: 1500 * time.Millisecond, Burst: 9},
	} {
		got, err := algorithm.ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
		if again := got.String(); again != text {
			t.Errorf("%s: written back as %s", text, again)
		}
	}
}

// Several spellings of a limit are one limit, and have one text.
func TestLimitTextHasOneSpelling(t *testing.T) {
	for spelling, text := range map[string]string{
		"10/s":                            "10/1s",
		"10/1000ms":                       "10/1s",
		"5/µs":                            "5/1µs",
		"5/us":                            "5/1µs",
		"token-bucket 10/m burst=10":      "10/1m",
		"  gcra\t10/60s  ":                "gcra 10/1m",
		"leaky-bucket 4/1s burst=4":       "leaky-bucket 4/1s",
		"leaky-queue 4/1s queue=4":        "leaky-queue 4/1s",
		"sliding-buckets 100/1m cells=60": "sliding-buckets 100/1m",
		"calendar 5/day anchor=00 tz=UTC": "5/day",
		"5/month anchor=1":                "5/month",
		"5/year anchor=01-01":             "5/year",
		"5/day anchor=3 tz=Asia/Tokyo":    "5/day tz=Asia/Tokyo anchor=3",
		"concurrent 3 lease=60s":          "concurrent 3 lease=1m",
		"1/24h0m0s":                       "1/24h",
		"1/10m0s":                         "1/10m",
		"5/min":                           "5/1m",
		"5/minute":                        "5/1m",
		"5/1min":                          "5/1m",
		"5/10minutes":                     "5/10m",
		"5/sec":                           "5/1s",
		"5/second":                        "5/1s",
		"100/hour":                        "100/1h",
		"100/2hours":                      "100/2h",
		"5/1hour30min":                    "5/1h30m",
		"5/1d":                            "5/24h",
		"5/1d12h":                         "5/36h",
		"gcra 5/7d":                       "gcra 5/168h",
		"concurrent 3 lease=5min":         "concurrent 3 lease=5m",
		"1000/day":                        "1000/day", // not 1000/24h
	} {
		got, err := algorithm.ParseLimit(spelling)
		if err != nil || got.String() != text {
			t.Errorf("%q: %q, %v; want %q", spelling, got.String(), err, text)
		}
	}
}

func TestLimitIsTextInJSON(t *testing.T) {
	type policy struct {
		Limit algorithm.Limit `json:"limit"`
	}
	var p policy
	if err := json.Unmarshal([]byte(`{"limit":"gcra 10/s burst=20"}`), &p); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(p); err != nil || string(text) != `{"limit":"gcra 10/1s burst=20"}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"limit":"0/1s"}`), &p); err == nil || p.Limit.Burst != 20 {
		t.Errorf("a bad limit: %v, and %+v", err, p.Limit)
	}
}

// The error for foreign notation has the likely limit text.
func TestNearMissesGetASuggestion(t *testing.T) {
	for text, near := range map[string]string{
		"5/mins":               "5/min",
		"5/Min":                "5/min",
		"5/hrs":                "5/h",
		"10r/s":                "10/s", // nginx
		"5-M":                  "5/m",  // ulule/limiter
		"5 per minute":         "5/minute",
		"100 / hour":           "100/hour",
		"gcra 10 req/s":        "10/s",
		"5/d":                  "5/day (of the calendar) or 5/1d (any 24 hours)",
		"5/1day":               "5/day (of the calendar) or 5/1d (any 24 hours)",
		"5/w":                  "5/week (of the calendar) or 5/7d (any 168 hours)",
		"5/3days":              "5/3d",
		"5/years":              "5/year",
		"5/month burst=":       "",
		"5/2months":            "",
		"0/mins":               "",
		"5/fortnight":          "",
		"gcra 5/1day":          "5/1d",
		"0/1s":                 "",
		"5/106752d":            "",
		"5/+1d":                "",
		"5/1.5d":               "",
		"5/1h+1d":              "5/1h",
		"5/0foo":               "",
		"9223372036854775808/": "",
	} {
		_, err := algorithm.ParseLimit(text)
		refused, ok := errors.AsType[*algorithm.LimitError](err)
		if !ok {
			t.Errorf("%s: error is %v, want a *LimitError", text, err)
			continue
		}
		_, got, _ := strings.Cut(refused.Accept, "; did you mean ")
		if strings.TrimSuffix(got, "?") != near {
			t.Errorf("%s: suggestion is %q, want %q", text, got, near)
		}
	}
}

// The calendar has days; other algorithms have 24 hours, which the error names.
func TestCalendarUnitOfAnotherAlgorithm(t *testing.T) {
	_, err := algorithm.ParseLimit("gcra 5/day")
	if refused, ok := errors.AsType[*algorithm.LimitError](err); !ok || !strings.Contains(refused.Accept, "such as 1d for 24 hours") {
		t.Errorf("got %v", err)
	}
}

// TestEveryValidLimitHasItsText: whatever can be built can be written and read back.
func TestEveryValidLimitHasItsText(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, err := algorithm.Compile(l, time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		got, err := algorithm.ParseLimit(l.String())
		if err != nil || got != p.Limit() {
			t.Fatalf("%+v is %q, which is %+v, %v", l, l.String(), got, err)
		}
	})
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range append(eachAlgorithm("10/1s"), "500/day tz=Europe/Berlin anchor=15", "1/year anchor=02-29", "concurrent 3 lease=1m", "100/1m burst=7", "x", "/", "1/", "exponential 1/1h strict", "5/µs", "5/1d12hours", "5/mins", "5/1day", "5 per minute", "concurrent 1 lease=1d") {
		f.Add(text)
	}
	f.Add(strings.Repeat("9", 300))
	f.Fuzz(func(t *testing.T, text string) {
		l, err := algorithm.ParseLimit(text)
		if err != nil {
			var refused *algorithm.LimitError
			if !errors.As(err, &refused) || refused.Field == "" || refused.Accept == "" {
				t.Fatalf("%q: %#v is no refusal of a field", text, err)
			}
			if len(err.Error()) > 4*200+400 {
				t.Fatalf("%q: an error of %d bytes", text, len(err.Error()))
			}
			return
		}
		if l != l.Canonical() || l.Validate() != nil || l.Count < 1 || l.Period < 1 || l.Capacity() < 1 || l.Capacity() == math.MinInt64 {
			t.Fatalf("%q: %+v", text, l)
		}
		again, err := algorithm.ParseLimit(l.String())
		if err != nil || again != l || again.String() != l.String() {
			t.Fatalf("%q is %q, which is %+v, %v", text, l.String(), again, err)
		}
	})
}
