package storetest

import (
	"time"
	_ "time/tzdata" // of the calendar's limits
)

// start is a time within the reach of every limit: 14 November 2023, in nanoseconds since the Unix epoch. It is a whole
// number of most periods, and of all ticks.
const start int64 = 1_700_000_000_000_000_000

// limits are every algorithm, with and without its options, and rates whose interval is no whole number of microseconds.
var limits = []string{
	"10/1s", "3/1s burst=5", "7/1s",
	"gcra 10/1s burst=20", "gcra 99999/1s burst=50", "gcra 100000/1s burst=1",
	"leaky-bucket 4/1s", "leaky-bucket 9/1m burst=3",
	"leaky-queue 4/1s", "leaky-queue 4/1s queue=10", "leaky-queue 7/1s queue=2",
	"cooldown 3/1m", "cooldown 7/1s",
	"min-interval 10/1s", "min-interval 7/1s",
	"refill-bucket 5/10s burst=12", "refill-bucket 7/1s",
	"fixed-window 5/10s", "fixed-window 100/500ms",
	"quota-reset 5/10s", "quota-reset 100/500ms",
	"sliding-log 4/10s", "sliding-log 20/500ms",
	"sliding-window 9/10s", "sliding-window 100/1m",
	"sliding-buckets 8/10s cells=7", "sliding-buckets 100/1m",
	"hybrid 6/6s", "hybrid 7/1s",
	"exponential 10/10s", "exponential 100/1h", "exponential 10/10s strict",
	"5/day", "500/day tz=Europe/Berlin anchor=15", "7/week anchor=3", "10000/month", "25/year tz=America/New_York anchor=02-29",
	"concurrent 4 lease=10s", "concurrent 20 lease=500ms",
}

// slow are limits, one or more of each algorithm, that give next to nothing back while a test runs, so that what they
// admit by a clock that runs is known to the unit.
var slow = []string{
	"25/720h", "7/720h burst=25", "gcra 25/720h", "leaky-bucket 25/720h", "leaky-queue 25/720h queue=24", "cooldown 25/720h", "min-interval 1/720h",
	"refill-bucket 5/720h burst=25", "fixed-window 25/720h", "quota-reset 25/720h", "sliding-log 25/720h", "sliding-window 25/720h",
	"sliding-buckets 25/720h cells=30", "hybrid 25/720h", "exponential 25/720h", "exponential 25/720h strict", "25" + year(), "concurrent 25 lease=720h",
}

// year is a year of the calendar that does not begin while a test runs.
func year() string { return "/year anchor=" + time.Now().AddDate(0, 6, 0).Format("01-") + "15" }

// tight are such limits with so little room that nearly all who race are denied, roomy are such with room for all.
var (
	tight = []string{
		"2/720h", "gcra 2/720h", "leaky-bucket 2/720h", "leaky-queue 2/720h queue=1", "cooldown 2/720h", "min-interval 1/720h",
		"refill-bucket 1/720h burst=2", "fixed-window 2/720h", "quota-reset 2/720h", "sliding-log 2/720h", "sliding-window 2/720h",
		"sliding-buckets 2/720h cells=30", "hybrid 2/720h", "exponential 2/720h", "exponential 2/720h strict", "2" + year(), "concurrent 2 lease=720h",
	}
	roomy = []string{
		"500/720h", "gcra 500/720h", "leaky-bucket 500/720h", "leaky-queue 500/720h queue=499", "cooldown 500/720h", "refill-bucket 5/720h burst=500",
		"fixed-window 500/720h", "quota-reset 500/720h", "sliding-log 500/720h", "sliding-window 500/720h", "sliding-buckets 500/720h cells=30",
		"hybrid 500/720h", "exponential 500/720h", "exponential 500/720h strict", "500" + year(), "concurrent 500 lease=720h",
	}
)

// quick are limits, one of each algorithm but for the calendar's, that have given all back within a second.
var quick = []string{
	"2/400ms", "gcra 2/400ms", "leaky-bucket 2/400ms", "leaky-queue 2/400ms queue=1", "cooldown 2/400ms", "min-interval 2/800ms",
	"refill-bucket 1/200ms burst=2", "fixed-window 2/400ms", "quota-reset 2/400ms", "sliding-log 2/400ms", "sliding-window 2/400ms",
	"sliding-buckets 2/400ms cells=8", "hybrid 2/400ms", "exponential 2/400ms", "concurrent 2 lease=400ms",
}

// pairs are limits, one of each algorithm, any two of which a name can have in turn. At one instant what is used is known to the unit under all of them.
var pairs = []string{
	"10/1s", "gcra 7/1s burst=20", "leaky-bucket 4/1s", "leaky-queue 4/1s queue=10", "cooldown 7/1s", "min-interval 10/1s",
	"refill-bucket 5/10s burst=12", "fixed-window 5/10s", "quota-reset 15/10s", "sliding-log 4/10s", "sliding-window 9/10s",
	"sliding-buckets 8/10s cells=7", "hybrid 7/1s", "exponential 10/10s", "10/day", "concurrent 14 lease=10s",
}

// traceless are limits of which a take that is given back at the same instant leaves no trace.
var traceless = []string{
	"5/1s", "gcra 7/1s burst=4", "leaky-bucket 4/1s", "cooldown 3/1m", "fixed-window 5/10s", "sliding-log 4/10s",
	"sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "5/day tz=Asia/Tokyo", "concurrent 4 lease=10s",
}

// extremes are limits with numbers near the ends of what int64 and float64 count. A store may refuse them.
var extremes = []string{
	"1000000/1s burst=9000000000", "1/24h burst=20000", "1000000000/1s burst=3", "3/8760h", "9007199254740993/8760h",
	"leaky-queue 1/1h queue=500000", "cooldown 16777217/24h",
	"fixed-window 9223372036854775807/1h", "fixed-window 9007199254740993/1h", "quota-reset 9007199254740993/8760h",
	"sliding-log 9007/24h", "sliding-window 4503599627370497/1h", "sliding-window 9223372036854775807/1h",
	"sliding-buckets 9007199254740993/1h cells=60", "refill-bucket 9007199254740993/1h", "refill-bucket 1/1ms burst=100000",
	"hybrid 1000000/1h", "exponential 4503599627370496/1h", "exponential 1000000/4000h",
	"9223372036854775807/month", "9007199254740993/year tz=Pacific/Apia", "concurrent 9007 lease=24h",
}
