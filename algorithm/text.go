package algorithm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxText bounds the limit text that ParseLimit looks at.
const maxText = 200

// ParseLimit reads the limit text:
//
//	[algorithm] count/period [burst=n] [queue=n] [cells=n] [strict]
//	[calendar] count/day|week|month|year [tz=zone] [anchor=n]
//	concurrent count lease=duration
//
// as in "100/1m", "gcra 10/1s burst=20", "sliding-buckets 100/1m cells=60", "10000/month anchor=15 tz=Europe/Berlin" or
// "concurrent 10 lease=30s".
//
// The period and the lease are Go durations. Their units may also be sec, second, min, minute,
// hour, the plurals of second, minute and hour, and d for 24 hours. A unit without a number is 1
// unit: 10/s, 5/min. A bare d is rejected, because a day is ambiguous: 500/day restarts at
// midnight, 500/1d is 500/24h.
//
// The returned limit is valid and in canonical form. The error is a [*LimitError].
func ParseLimit(text string) (Limit, error) {
	if len(text) > maxText {
		return Limit{}, refuse("text", fmt.Sprintf("of %d bytes", len(text)), "at most %d bytes", maxText)
	}
	l, err := parseLimit(text)
	if refused, ok := errors.AsType[*LimitError](err); ok {
		if near := nearest(text); near != "" {
			refused.Accept += "; did you mean " + near + "?"
		}
	}
	return l, err
}

func parseLimit(text string) (Limit, error) {
	words := strings.Fields(text)
	var l Limit
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		l.Algorithm, words = Algorithm(words[0]), words[1:]
	}
	if len(words) == 0 {
		return Limit{}, refuse("text", fmt.Sprintf("%q", text), "[algorithm] count/period, such as 100/1m, gcra 10/1s burst=20 or 500/day, or concurrent count lease=duration")
	}
	var err error
	if l.Algorithm == Concurrent {
		l.Count, err = parseConcurrent(words[0])
	} else {
		err = l.parseRate(words[0])
	}
	if err != nil {
		return Limit{}, err
	}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if seen[name] {
			return Limit{}, refuse(name, "twice", "once")
		}
		seen[name] = true
		if err := l.parseOption(word, name, value); err != nil {
			return Limit{}, err
		}
	}
	l.nanoseconds = true // the text has a unit
	l = l.Canonical()
	if l.Algorithm == Concurrent && !seen["lease"] {
		return Limit{}, refuse("lease", "none", "how long a unit is in flight if nobody releases it, such as lease=30s")
	}
	return l, l.Validate()
}

// MustParseLimit is ParseLimit for a text known to be right; it panics on any other.
func MustParseLimit(text string) Limit {
	l, err := ParseLimit(text)
	if err != nil {
		panic(err)
	}
	return l
}

func (l *Limit) parseRate(word string) (err error) {
	count, period, found := strings.Cut(word, "/")
	if !found {
		return refuse("rate", fmt.Sprintf("%q", word), "count/period, such as 100/1m")
	}
	if l.Count, err = parseCount("count", count); err != nil {
		return err
	}
	if unit := Unit(period); unit.known() {
		if l.Algorithm != "" && l.Algorithm != Calendar {
			return refuse("period", fmt.Sprintf("%q", period), "a duration for %s, such as 1d for 24 hours; units of the calendar are for calendar", l.Algorithm)
		}
		l.Algorithm, l.Unit = Calendar, unit
		return nil
	}
	if l.Algorithm == Calendar {
		return refuse("period", fmt.Sprintf("%q", period), "%s", unitsAccepted)
	}
	var ok bool
	if l.Period, ok = parsePeriod(period); !ok || period == "d" {
		return refuse("period", fmt.Sprintf("%q", period), "a duration such as 1s, 500ms, min, 1h30m, 24h or 7d, up to 292 years, or "+unitsAccepted)
	}
	return nil
}

// parseConcurrent reads a count that is per nothing.
func parseConcurrent(word string) (int64, error) {
	if strings.Contains(word, "/") {
		return 0, refuse("count", strconv.Quote(word), "a count and a lease for concurrent, such as concurrent 10 lease=30s")
	}
	return parseCount("count", word)
}

func (l *Limit) parseOption(word, name, value string) (err error) {
	var field *int64
	switch name {
	case "burst":
		field = &l.Burst
	case "queue":
		field = &l.Queue
	case "cells":
		field = &l.Cells
	case "strict":
		if word != name {
			return refuse("option", strconv.Quote(word), "strict, with no value")
		}
		l.Strict = true
		return nil
	case "tz", "anchor", "lease":
		return l.parseCalendarOption(name, value)
	default:
		return refuse("option", fmt.Sprintf("%q", word), "burst=n, queue=n, cells=n, strict, tz=zone, anchor=n or lease=duration")
	}
	if *field, err = parseCount(name, value); err == nil && *field < 1 {
		err = refuse(name, *field, "1 or more")
	}
	return err
}

// parseCalendarOption reads an option of calendar and concurrent limits.
func (l *Limit) parseCalendarOption(name, value string) (err error) {
	switch {
	case name == "lease" && l.Algorithm != Concurrent:
		return refuse(name, strconv.Quote(value), "none for %s", l.Canonical().Algorithm)
	case name == "tz":
		if l.Zone = value; value == "" {
			return refuse(name, strconv.Quote(value), "%s", zoneAccepted)
		}
	case name == "anchor":
		l.Anchor, err = l.Unit.parseAnchor(value)
	default:
		var ok bool
		if l.Period, ok = parsePeriod(value); !ok {
			return refuse(name, strconv.Quote(value), "a duration such as 30s or 5m")
		}
	}
	return err
}

func parseCount(field, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, refuse(field, text, "1 to 9223372036854775807")
	case err != nil:
		return 0, refuse(field, fmt.Sprintf("%q", text), "a whole number")
	}
	return n, nil
}

// String returns the limit text that ParseLimit reads back to the same limit, without what goes without saying.
func (l Limit) String() string {
	l = l.Canonical()
	var b strings.Builder
	if l.Algorithm != TokenBucket && l.Algorithm != Calendar {
		b.WriteString(string(l.Algorithm) + " ")
	}
	b.WriteString(strconv.FormatInt(l.Count, 10))
	switch l.Algorithm {
	case Calendar:
		b.WriteString(l.calendarText())
	case Concurrent:
		b.WriteString(" lease=" + formatPeriod(l.Period))
	default:
		b.WriteString("/" + formatPeriod(l.Period))
	}
	option := func(name string, value, silent int64) {
		if value != silent && value != 0 {
			b.WriteString(" " + name + "=" + strconv.FormatInt(value, 10))
		}
	}
	option("burst", l.Burst, l.Count)
	option("queue", l.Queue, l.Count)
	option("cells", l.Cells, DefaultCells)
	if l.Strict {
		b.WriteString(" strict")
	}
	return b.String()
}

// formatPeriod is d.String() without trailing zero parts: 1m, not 1m0s.
func formatPeriod(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText implements encoding.TextMarshaler with the limit text.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with the limit text.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}

func names() string {
	list := make([]string, 0, len(All()))
	for _, a := range All() {
		list = append(list, string(a))
	}
	return strings.Join(list, ", ")
}
