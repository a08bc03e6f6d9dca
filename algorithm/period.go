package algorithm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDays is the most days in a time.Duration.
const maxDays = 106751

// periodUnits maps the words of a period to the units of time.ParseDuration. A day of a period is
// 24 hours; the words day, week, month and year belong to the calendar.
var periodUnits = map[string]string{
	"ns": "ns", "us": "us", "µs": "us", "μs": "us", "ms": "ms",
	"s": "s", "sec": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "minute": "m", "minutes": "m",
	"h": "h", "hour": "h", "hours": "h",
	"d": "d",
}

// parsePeriod reads a Go duration whose units may also be the words of periodUnits, such as 1min,
// 2hours or 7d. A word without a number is 1 unit.
func parsePeriod(text string) (time.Duration, bool) {
	const number = "+-.0123456789"
	if text != "" && text[0] >= 'a' {
		text = "1" + text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		word := strings.TrimLeft(rest, number)
		n := rest[:len(rest)-len(word)]
		if end := strings.IndexAny(word, number); end >= 0 {
			word = word[:end]
		}
		rest = rest[len(n)+len(word):]
		unit, known := periodUnits[word]
		switch {
		case !known && word != "":
			return 0, false
		case unit == "d":
			days, err := strconv.ParseUint(n, 10, 64)
			if err != nil || days > maxDays {
				return 0, false
			}
			n, unit = strconv.FormatUint(24*days, 10), "h"
		}
		b.WriteString(n + unit)
	}
	d, err := time.ParseDuration(b.String())
	return d, err == nil
}

// nearRate matches a rate in foreign notation, or in words: 10r/s, 5-M, 5 per minute,
// 100 / hour.
var nearRate = regexp.MustCompile(`\b([0-9]+) ?(?:r|reqs?|requests?|hits?)? ?(?:/|-|\bper\b) ?([0-9]*) ?([a-z]+)`)

// nearUnits maps unit words, without a plural's s, to the words of the limit text.
var nearUnits = map[string]string{
	"s": "s", "sec": "sec", "second": "second",
	"m": "m", "min": "min", "minute": "minute",
	"h": "h", "hr": "h", "hour": "hour",
	"d": "day", "day": "day", "w": "week", "wk": "week", "week": "week",
	"mo": "month", "mon": "month", "month": "month", "y": "year", "yr": "year", "year": "year",
}

// nearest returns the likely rates of a rejected limit text, such as 5/min for 5/mins, or "". A
// day or a week has two readings, of which an algorithm with periods has one.
func nearest(text string) string {
	m := nearRate.FindStringSubmatch(strings.ToLower(strings.Join(strings.Fields(text), " ")))
	if m == nil {
		return ""
	}
	count, number, word := m[1], m[2], m[3]
	unit := nearUnits[word]
	if unit == "" {
		unit = nearUnits[strings.TrimSuffix(word, "s")]
	}
	near := count + "/" + number + unit
	if Unit(unit).known() {
		of, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		near = nearCalendar(count, number, word, Unit(unit))
		if _, period, two := strings.Cut(near, " or "); two && of != string(Calendar) && !strings.ContainsAny(of, "/0123456789") {
			near, _, _ = strings.Cut(period, " ")
		}
	}
	var l Limit
	first, _, _ := strings.Cut(near, " ")
	if unit == "" || l.parseRate(first) != nil || l.Canonical().Validate() != nil {
		return ""
	}
	if slices.Contains(strings.Fields(text), near) {
		return ""
	}
	return near
}

// nearCalendar returns the readings of a count per days, weeks, months or years; the parser checks
// the first reading.
func nearCalendar(count, number, word string, unit Unit) string {
	one := count + "/" + string(unit)
	switch {
	case unit != Day && unit != Week:
		if number == "" || number == "1" {
			return one
		}
		return ""
	case number == "" && word != "d" && word != "w":
		return one
	}
	n, err := strconv.Atoi("0" + number)
	if err != nil || n > maxDays {
		return ""
	}
	n = max(n, 1)
	days := n * int(unit.nominal()/Day.nominal())
	period := count + "/" + strconv.Itoa(days) + "d"
	if n > 1 {
		return period
	}
	return one + " (of the calendar) or " + period + " (any " + strconv.Itoa(24*days) + " hours)"
}
