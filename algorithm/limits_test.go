package algorithm_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

const day = 24 * time.Hour

// awkward are rates whose interval is no whole number of nanoseconds, or is one at the edge of what an int64 holds.
var awkward = []algorithm.Limit{
	{Count: 7, Period: time.Second},
	{Count: 3, Period: 18 * time.Second},
	{Count: 99_999, Period: time.Second},
	{Count: 600_000_000, Period: time.Second},
	{Count: 700_000_001, Period: time.Second},
	{Count: 2_000_000_000, Period: time.Second},
	{Count: 1, Period: 1},
	{Count: 3, Period: 1},
	{Count: 5, Period: 3},
	{Count: math.MaxInt64, Period: 1},
	{Count: math.MaxInt64 - 1, Period: time.Second},
	{Count: math.MaxInt64, Period: 1<<60 - 1},
	{Count: math.MaxInt64 / 3, Period: 365 * day},
	{Count: 1, Period: 365 * day},
	{Count: 1 << 52, Period: 200 * day},
	{Count: 1 << 20, Period: 24 * time.Hour},
}

// limits draws limits of an algorithm that compile: small ones, whose edges a short trace meets, awkward ones, and any.
func limits(a algorithm.Algorithm) *rapid.Generator[algorithm.Limit] {
	return rapid.Custom(func(t *rapid.T) algorithm.Limit {
		l := algorithm.Limit{}
		switch rapid.IntRange(0, 5).Draw(t, "size of limit") {
		case 0, 1, 2:
			l.Count = rapid.Int64Range(1, 6).Draw(t, "count")
			l.Period = time.Duration(rapid.Int64Range(1, 40).Draw(t, "period"))
		case 3, 4:
			l = rapid.SampledFrom(awkward).Draw(t, "rate")
		default:
			l.Count = anySize(t, "count")
			l.Period = time.Duration(anySize(t, "period"))
		}
		l.Algorithm = a
		drawOptions(t, &l)
		return l
	}).Filter(compiles)
}

// compiles reports whether a limit makes sense. Compile accepts periods of a few nanoseconds, which
// Validate refuses.
func compiles(l algorithm.Limit) bool {
	_, err := algorithm.Compile(l, time.Nanosecond)
	return err == nil
}

// zones are time zones with awkward clocks: set over midnight, by half an hour, at an offset of 45 minutes, by a whole day, in the southern
// half of the year, and by rules that came and went.
var zones = []string{
	"", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu",
	"Pacific/Chatham", "Pacific/Apia", "Pacific/Kwajalein", "America/Juneau", "Africa/Casablanca", "Asia/Tehran", "Europe/Dublin", "Antarctica/Troll", "America/St_Johns",
}

var units = []algorithm.Unit{algorithm.Day, algorithm.Week, algorithm.Month, algorithm.Year}

func drawCalendar(t *rapid.T, l *algorithm.Limit) {
	l.Period = 0
	l.Unit = rapid.SampledFrom(units).Draw(t, "unit")
	l.Zone = rapid.SampledFrom(zones).Draw(t, "zone")
	if rapid.Bool().Draw(t, "anchored") {
		l.Anchor = drawAnchor(t, l.Unit)
	}
}

func drawAnchor(t *rapid.T, u algorithm.Unit) int64 {
	switch u {
	case algorithm.Day:
		return rapid.Int64Range(0, 23).Draw(t, "hour")
	case algorithm.Week:
		return rapid.Int64Range(1, 7).Draw(t, "day of the week")
	case algorithm.Month:
		return rapid.SampledFrom([]int64{1, 2, 15, 27, 28, 29, 30, 31}).Draw(t, "day of the month")
	}
	return rapid.SampledFrom([]int64{101, 229, 228, 301, 331, 430, 1030, 1231}).Draw(t, "day of the year")
}

// limitAt returns the limit of an algorithm that has this count and period, which to a calendar is a year or a day.
func limitAt(a algorithm.Algorithm, count int64, period time.Duration) algorithm.Limit {
	l := algorithm.Limit{Algorithm: a, Count: count, Period: period}
	if a == algorithm.Calendar {
		l.Period, l.Unit = 0, algorithm.Day
		if period >= 365*day {
			l.Unit = algorithm.Year
		}
	}
	return l.Canonical()
}

func drawOptions(t *rapid.T, l *algorithm.Limit) {
	switch l.Algorithm {
	case algorithm.TokenBucket, algorithm.GCRA, algorithm.LeakyBucket, algorithm.RefillBucket:
		l.Burst = option(t, "burst", 7)
	case algorithm.LeakyQueue:
		l.Queue = option(t, "queue", 7)
	case algorithm.SlidingBuckets:
		l.Cells = option(t, "cells", min(int64(l.Period), 12))
	case algorithm.Calendar:
		drawCalendar(t, l)
	case algorithm.Exponential:
		l.Strict = rapid.Bool().Draw(t, "strict")
	}
}

// option draws 0 for the default, a small value, or any.
func option(t *rapid.T, name string, small int64) int64 {
	switch rapid.IntRange(0, 6).Draw(t, "size of "+name) {
	case 0, 1, 2:
		return 0
	case 3, 4, 5:
		return rapid.Int64Range(1, small).Draw(t, name)
	}
	return anySize(t, name)
}

// anySize draws from 1 to MaxInt64, each number of bits alike.
func anySize(t *rapid.T, name string) int64 {
	most := int64(math.MaxInt64) >> rapid.IntRange(0, 62).Draw(t, "shift of "+name)
	return rapid.Int64Range(1, most).Draw(t, name)
}

// forAll checks a property of limits for each of the algorithms, or for all of them.
func forAll(t *testing.T, property func(*rapid.T, algorithm.Limit), algorithms ...algorithm.Algorithm) {
	if len(algorithms) == 0 {
		algorithms = algorithm.All()
	}
	for _, a := range algorithms {
		t.Run(string(a), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				property(t, limits(a).Draw(t, "limit"))
			})
		})
	}
}

// except lists the algorithms but these.
func except(these ...algorithm.Algorithm) []algorithm.Algorithm {
	return slices.DeleteFunc(algorithm.All(), func(a algorithm.Algorithm) bool { return slices.Contains(these, a) })
}

func compile(t interface{ Fatal(...any) }, l algorithm.Limit) *algorithm.Program {
	p, err := algorithm.Compile(l, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
