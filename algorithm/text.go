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
//
// as in "100/1m", "gcra 10/1s burst=20" or "sliding-buckets 100/1m cells=60". The period is a Go duration; a
// bare unit stands for one of it ("10/s"). The limit that it returns is valid, and in canonical form.
func ParseLimit(text string) (Limit, error) {
	if len(text) > maxText {
		return Limit{}, refuse("text", fmt.Sprintf("of %d bytes", len(text)), "at most %d bytes", maxText)
	}
	words := strings.Fields(text)
	var l Limit
	if len(words) > 0 && !strings.Contains(words[0], "/") {
		l.Algorithm, words = Algorithm(words[0]), words[1:]
	}
	if len(words) == 0 {
		return Limit{}, refuse("text", fmt.Sprintf("%q", text), "[algorithm] count/period, such as 100/1m or gcra 10/1s burst=20")
	}
	if err := l.parseRate(words[0]); err != nil {
		return Limit{}, err
	}
	for _, word := range words[1:] {
		if err := l.parseOption(word); err != nil {
			return Limit{}, err
		}
	}
	l = l.Canonical()
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
	if period != "" && period[0] >= 'a' {
		period = "1" + period
	}
	l.Period, err = time.ParseDuration(period)
	if err != nil {
		return refuse("period", fmt.Sprintf("%q", period), "a duration such as 1s, 500ms, 1m, 1h30m or 24h, up to 292 years")
	}
	return nil
}

func (l *Limit) parseOption(word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	var field *int64
	switch name {
	case "burst":
		field = &l.Burst
	case "queue":
		field = &l.Queue
	case "cells":
		field = &l.Cells
	case "strict":
		if word != name || l.Strict {
			return refuse("option", fmt.Sprintf("%q", word), "strict, once, with no value")
		}
		l.Strict = true
		return nil
	default:
		return refuse("option", fmt.Sprintf("%q", word), "burst=n, queue=n, cells=n or strict")
	}
	if *field != 0 {
		return refuse(name, "twice", "once")
	}
	if *field, err = parseCount(name, value); err == nil && *field < 1 {
		err = refuse(name, *field, "1 or more")
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
	if l.Algorithm != TokenBucket {
		b.WriteString(string(l.Algorithm) + " ")
	}
	b.WriteString(strconv.FormatInt(l.Count, 10) + "/" + formatPeriod(l.Period))
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
