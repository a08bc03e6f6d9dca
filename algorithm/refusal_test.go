package algorithm_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A refusal is what a LimitError must say: the field, the value as it was, and part of what would be accepted.
type refusal struct{ field, value, accept string }

func (want refusal) check(t *testing.T, what any, err error) {
	t.Helper()
	var got *algorithm.LimitError
	if !errors.As(err, &got) {
		t.Errorf("%+v: %v, want a refusal of %s", what, err, want.field)
		return
	}
	if got.Field != want.field || got.Value != want.value || !strings.Contains(got.Accept, want.accept) {
		t.Errorf("%+v: %#v, want %+v", what, got, want)
	}
	for _, part := range []string{got.Field, got.Value, got.Accept} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%+v: %q does not say %q", what, err, part)
		}
	}
}

// These are also pitfall A3 (rates and periods that are nothing, less, or no number).
func TestLimitTextIsRefused(t *testing.T) {
	for text, want := range map[string]refusal{
		"":                      {"text", `""`, "count/period"},
		"gcra":                  {"text", `"gcra"`, "count/period"},
		"gcra gcra":             {"rate", `"gcra"`, "count/period"},
		"leaky 4/1s":            {"algorithm", `"leaky"`, "leaky-bucket, leaky-queue"},
		"0/1s":                  {"count", "0", "1 to 9223372036854775807"},
		"-1/1s":                 {"count", "-1", "1 to 9223372036854775807"},
		"NaN/1s":                {"count", `"NaN"`, "whole number"},
		"Inf/1s":                {"count", `"Inf"`, "whole number"},
		"1.5/1s":                {"count", `"1.5"`, "whole number"},
		"/1s":                   {"count", `""`, "whole number"},
		"1e3/1s":                {"count", `"1e3"`, "whole number"},
		"9223372036854775808/s": {"count", "9223372036854775808", "1 to 9223372036854775807"},
		"10/":                   {"period", `""`, "1h30m"},
		"10/0s":                 {"period", "0s", "1ns"},
		"10/-1s":                {"period", "-1s", "1ns"},
		"10/10":                 {"period", `"10"`, "1s, 500ms"},
		"10/1y":                 {"period", `"1y"`, "24h"},
		"10/NaN":                {"period", `"NaN"`, "1s, 500ms"},
		"10/9999999h":           {"period", `"9999999h"`, "duration"},
		"10/1s burst=0":         {"burst", "0", "1 or more"},
		"10/1s burst=-3":        {"burst", "-3", "1 or more"},
		"10/1s burst":           {"burst", `""`, "whole number"},
		"10/1s burst=5 burst=6": {"burst", "twice", "once"},
		"10/1s capacity=5":      {"option", `"capacity=5"`, "burst=n"},
		"10/1s strict":          {"strict", "true", "none for token-bucket"},
		"10/1s queue=5":         {"queue", "5", "none for token-bucket"},
		"gcra 10/1s cells=5":    {"cells", "5", "none for gcra"},

		"fixed-window 10/1s burst=5":         {"burst", "5", "none for fixed-window"},
		"exponential 10/1s strict=yes":       {"option", `"strict=yes"`, "no value"},
		"exponential 10/1s strict strict":    {"strict", "twice", "once"},
		"sliding-buckets 10/1s cells=3601":   {"cells", "3601", "1 to 3600"},
		"sliding-buckets 10/59ns":            {"cells", "60", "at most 59"},
		"sliding-log 1048577/1s":             {"count", "1048577", "1 to 1048576"},
		"exponential 4503599627370497/1s":    {"count", "4503599627370497", "1 to 4503599627370496"},
		"exponential 1/5400h":                {"period", "5400h0m0s", "at most"},
		"fixed-window 1/350000h":             {"period", "350000h0m0s", "less than"},
		"1/1h burst=9223372036854775807":     {"burst", "9223372036854775807", "73 years"},
		"refill-bucket 1/1h burst=900000":    {"burst", "900000", "73 years"},
		"leaky-queue 1/1h queue=900000":      {"queue", "900000", "73 years"},
		"leaky-queue 1/1s queue=" + maxInt64: {"queue", maxInt64, "1 to 9223372036854775806"},
	} {
		_, err := algorithm.ParseLimit(text)
		want.check(t, text, err)
	}
	_, err := algorithm.ParseLimit(strings.Repeat("1", 201))
	refusal{"text", "of 201 bytes", "at most 200 bytes"}.check(t, "a long text", err)
}

func TestTextOfCalendarAndConcurrentIsRefused(t *testing.T) {
	for text, want := range map[string]refusal{
		"10/day tz=Local":                {"tz", `"Local"`, "Europe/Berlin"},
		"10/day tz=Europe/Bonn":          {"tz", `"Europe/Bonn"`, "IANA"},
		"10/day tz=":                     {"tz", `""`, "IANA"},
		"10/day tz=UTC tz=UTC":           {"tz", "twice", "once"},
		"10/day anchor=24":               {"anchor", `"24"`, "0 to 23"},
		"10/day anchor=-1":               {"anchor", `"-1"`, "0 to 23"},
		"10/day anchor=0 anchor=0":       {"anchor", "twice", "once"},
		"10/day anchor=noon":             {"anchor", `"noon"`, "the hour"},
		"10/week anchor=0":               {"anchor", `"0"`, "1 (Monday) to 7 (Sunday)"},
		"10/month anchor=0":              {"anchor", `"0"`, "1 to 31"},
		"10/month anchor=32":             {"anchor", `"32"`, "1 to 31"},
		"10/year anchor=02-30":           {"anchor", `"02-30"`, "01-01 to 12-31"},
		"10/year anchor=1-1":             {"anchor", `"1-1"`, "01-01 to 12-31"},
		"10/year anchor=101":             {"anchor", `"101"`, "01-01 to 12-31"},
		"10/year anchor=13-01":           {"anchor", `"13-01"`, "01-01 to 12-31"},
		"10/month burst=3":               {"burst", "3", "none for calendar"},
		"10/month lease=3s":              {"lease", `"3s"`, "none for calendar"},
		"10/month strict":                {"strict", "true", "none for calendar"},
		"0/month":                        {"count", "0", "1 to"},
		"fixed-window 10/day":            {"period", `"day"`, "are for calendar"},
		"gcra 10/month":                  {"period", `"month"`, "a duration for gcra"},
		"calendar 10/1h":                 {"period", `"1h"`, "day, week, month or year"},
		"10/quarter":                     {"period", `"quarter"`, "day, week, month or year"},
		"10/1m tz=UTC":                   {"tz", `"UTC"`, "none for token-bucket"},
		"10/1m anchor=3":                 {"anchor", `"3"`, "none but for day, week, month or year"},
		"10/1m lease=3s":                 {"lease", `"3s"`, "none for token-bucket"},
		"concurrent 10":                  {"lease", "none", "lease=30s"},
		"concurrent 10/1m":               {"count", `"10/1m"`, "concurrent 10 lease=30s"},
		"concurrent lease=30s":           {"count", `"lease=30s"`, "whole number"},
		"concurrent 0 lease=30s":         {"count", "0", "1 to"},
		"concurrent 10 lease=0s":         {"lease", "0s", "1ns or longer"},
		"concurrent 10 lease=-1s":        {"lease", "-1s", "1ns or longer"},
		"concurrent 10 lease=":           {"lease", `""`, "30s or 5m"},
		"concurrent 10 lease=1s lease=":  {"lease", "twice", "once"},
		"concurrent 10 lease=1s tz=UTC":  {"tz", `"UTC"`, "none for concurrent"},
		"concurrent 10 lease=1s burst=2": {"burst", "2", "none for concurrent"},
		"concurrent 1048577 lease=1s":    {"count", "1048577", "1 to 1048576 for concurrent"},
		"concurrent 1 lease=350000h":     {"lease", "350000h0m0s", "less than"},
	} {
		_, err := algorithm.ParseLimit(text)
		want.check(t, text, err)
	}
}

const maxInt64 = "9223372036854775807"

func TestLimitIsRefused(t *testing.T) {
	const second = time.Second
	for l, want := range map[algorithm.Limit]refusal{
		{}:                                {"count", "0", "1 to"},
		{Count: 1}:                        {"period", "0s", "1ns"},
		{Count: 1, Period: -second}:       {"period", "-1s", "1ns"},
		{Count: -1, Period: second}:       {"count", "-1", "1 to"},
		{Count: math.MinInt64, Period: 1}: {"count", "-9223372036854775808", "1 to"},

		{Algorithm: "Token-Bucket", Count: 1, Period: 1}:                           {"algorithm", `"Token-Bucket"`, "token-bucket, gcra"},
		{Count: 1, Period: 1, Burst: -1}:                                           {"burst", "-1", "the count"},
		{Count: 1, Period: 1, Cells: 5}:                                            {"cells", "5", "none for token-bucket"},
		{Algorithm: algorithm.Cooldown, Count: 1, Period: 1, Burst: 2}:             {"burst", "2", "none for cooldown"},
		{Algorithm: algorithm.LeakyQueue, Count: 1, Period: 1, Queue: -2}:          {"queue", "-2", "1 to"},
		{Algorithm: algorithm.Hybrid, Count: 1, Period: 1, Queue: 2}:               {"queue", "2", "none for hybrid"},
		{Algorithm: algorithm.SlidingBuckets, Count: 1, Period: second, Cells: -1}: {"cells", "-1", "1 to 3600"},
		{Algorithm: algorithm.SlidingLog, Count: 1, Period: 1, Strict: true}:       {"strict", "true", "none for sliding-log"},

		{Algorithm: algorithm.Calendar, Count: 1}:                                                         {"unit", `""`, "day, week, month or year"},
		{Algorithm: algorithm.Calendar, Count: 1, Unit: "hour"}:                                           {"unit", `"hour"`, "day, week, month or year"},
		{Algorithm: algorithm.Calendar, Count: 1, Unit: algorithm.Day, Period: second}:                    {"period", "1s", "none for a day of the calendar"},
		{Algorithm: algorithm.Calendar, Count: 1, Unit: algorithm.Day, Anchor: -1}:                        {"anchor", "-1", "0 to 23"},
		{Algorithm: algorithm.Calendar, Count: 1, Unit: algorithm.Year, Anchor: math.MinInt64}:            {"anchor", "-9223372036854775808", "01-01 to 12-31"},
		{Algorithm: algorithm.Calendar, Count: 1, Unit: algorithm.Day, Zone: strings.Repeat("Zone/", 99)}: {"tz", `"` + strings.Repeat("Zone/", 20) + `"…`, "IANA"},
		{Count: 1, Period: 1, Unit: algorithm.Day}:                                                        {"unit", `"day"`, "none for token-bucket"},
		{Algorithm: algorithm.Concurrent, Count: 1}:                                                       {"lease", "0s", "1ns or longer"},
	} {
		want.check(t, l, l.Validate())
		_, err := algorithm.Compile(l, time.Nanosecond)
		want.check(t, l, err)
	}
}

// A number without a unit is nanoseconds. Texts have units, and Compile is for callers with intent.
func TestPeriodOfNanosecondsIsRefusedUnlessTextSaysIt(t *testing.T) {
	for _, test := range []struct {
		limit algorithm.Limit
		want  refusal
	}{
		{algorithm.Limit{Count: 100, Period: 60}, refusal{"period", "60ns", `60 * time.Second; if nanoseconds are meant, ParseLimit("100/60ns")`}},
		{algorithm.Limit{Count: 100, Period: 3600}, refusal{"period", "3.6µs", `ParseLimit("100/3.6µs")`}},
		{algorithm.Limit{Count: 100, Period: 86400, Burst: 7}, refusal{"period", "86.4µs", `ParseLimit("100/86.4µs burst=7")`}},
		{algorithm.Limit{Algorithm: algorithm.Concurrent, Count: 5, Period: 30}, refusal{"lease", "30ns", `ParseLimit("concurrent 5 lease=30ns")`}},
	} {
		err := test.limit.Validate()
		test.want.check(t, test.limit, err)
		if !compiles(test.limit) {
			t.Errorf("Compile refuses %v", test.limit)
		}
		parsed, err := algorithm.ParseLimit(test.limit.String())
		if err != nil || parsed.Validate() != nil || parsed.Period != test.limit.Period {
			t.Errorf("ParseLimit(%q) = %v, %v", test.limit.String(), parsed, err)
		}
		again, err := algorithm.ParseLimit(test.limit.String())
		if err != nil || again != parsed {
			t.Errorf("ParseLimit(%q) returns unequal limits", test.limit.String())
		}
		parsed.Period = time.Minute
		literal := test.limit
		literal.Period = time.Minute
		if parsed.Canonical() != literal.Canonical() {
			t.Errorf("%v with another period differs from a literal", test.limit)
		}
	}
	for _, text := range []string{"sliding-window 3/12ns", "sliding-buckets 8/40ns cells=4", "1/999ns", "1/1500ns"} {
		if l, err := algorithm.ParseLimit(text); err != nil || l.Validate() != nil {
			t.Errorf("ParseLimit(%q): %v, %v", text, err, l.Validate())
		}
	}
	for _, period := range []time.Duration{time.Microsecond, 500 * time.Microsecond, time.Millisecond, time.Millisecond + 1} {
		if err := (algorithm.Limit{Count: 1, Period: period}).Validate(); err != nil {
			t.Errorf("period %v: %v", period, err)
		}
	}
}

// A clock of microseconds can't tell windows that are not whole ones.
func TestLimitIsRefusedInMicroseconds(t *testing.T) {
	for text, want := range map[string]refusal{
		"fixed-window 10/1500ns":  {"period", "1.5µs", "whole number of 1µs"},
		"hybrid 10/1500ns":        {"period", "1.5µs", "whole number of 1µs"},
		"sliding-buckets 10/59µs": {"cells", "60", "at most 59"},
		"9223372036854775807/1ns": {"count", maxInt64, "less per 1ns"},
	} {
		l := algorithm.MustParseLimit(text)
		_, err := algorithm.Compile(l, time.Microsecond)
		want.check(t, text, err)
	}
}
