package algorithm

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Bounds on what a limit may say. A limit beyond them is refused when it is built.
const (
	// MaxLogCount is the largest Count of a sliding log, whose state has one entry for each admitted request.
	MaxLogCount = 1 << 20
	// MaxCells is the largest number of cells of sliding buckets, whose state has one counter for each.
	MaxCells = 3600
	// MaxRateCount is the largest Count of an exponential limit: float64 counts exactly up to there.
	MaxRateCount = 1 << 52
	// maxSpan bounds every span that a limit makes, in nanoseconds: 73 years. With times within MaxTime of the
	// epoch no sum of a state and a span overflows.
	maxSpan = 1 << 61
)

// MaxTime is the largest distance from the Unix epoch, in nanoseconds, of a time that a program is given: 105 years.
const MaxTime = 105 * 365 * 24 * int64(time.Hour)

// DefaultCells is the number of cells of sliding buckets that do not say.
const DefaultCells = 60

// A Limit says: at most Count units per Period, under an Algorithm.
//
// The zero value is not a limit; Count and Period are required. The other fields belong to some algorithms
// only, and are refused elsewhere.
type Limit struct { //nolint:recvcheck // a limit is a value; only UnmarshalText has to change one
	Algorithm Algorithm     // "" is TokenBucket
	Count     int64         // units per Period, at least 1
	Period    time.Duration // at least 1ns; see Validate for periods below 1ms

	// Burst is the most units admitted at one instant from a fresh key; 0 means Count.
	// For token-bucket, gcra, leaky-bucket and refill-bucket.
	Burst int64
	// Queue is the most requests that wait their turn, not counting the one being served; 0 means Count.
	// For leaky-queue.
	Queue int64
	// Cells is the number of cells that Period is cut into; 0 means DefaultCells. For sliding-buckets.
	Cells int64
	// Strict makes denied requests count too, so that a client that keeps hammering stays out. For exponential.
	Strict bool

	// Unit is what Count is for: a Day, Week, Month or Year of the calendar. For calendar, whose Period need not be given.
	Unit Unit
	// Zone is the time zone of the calendar, as the IANA names it; "" means UTC. For calendar.
	Zone string
	// Anchor is where a unit of the calendar begins; see [Unit]. 0 means where the calendar has it. For calendar.
	Anchor int64

	// nanoseconds is true if ParseLimit read a Period that would be a slip in a literal. Canonical
	// clears nanoseconds for all other periods, so equal limits are equal values.
	nanoseconds bool
}

// A LimitError says which field of a limit makes no sense, what it was, and what would be accepted.
type LimitError struct {
	Field  string // the name in the limit text: "count", "period", "burst", ...
	Value  string
	Accept string
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("weir: limit has %s %s; accepted: %s", e.Field, e.Value, e.Accept)
}

func refuse(field string, value any, accept string, args ...any) error {
	return &LimitError{Field: field, Value: fmt.Sprint(value), Accept: fmt.Sprintf(accept, args...)}
}

// Canonical returns l with its defaults filled in, the form in which equal limits are equal values.
func (l Limit) Canonical() Limit {
	l.nanoseconds = l.nanoseconds && l.slip()
	if l.Algorithm == "" {
		l.Algorithm = TokenBucket
	}
	switch l.Algorithm.kind().option {
	case "burst":
		if l.Burst == 0 {
			l.Burst = l.Count
		}
	case "queue":
		if l.Queue == 0 {
			l.Queue = l.Count
		}
	case "cells":
		if l.Cells == 0 {
			l.Cells = DefaultCells
		}
	}
	if l.Algorithm == Calendar {
		l = l.canonicalCalendar()
	}
	return l
}

// Capacity returns the most units that a fresh key admits at one instant; a request that costs more never passes.
func (l Limit) Capacity() int64 {
	l = l.Canonical()
	switch option := l.Algorithm.kind().option; {
	case option == "burst":
		return l.Burst
	case option == "queue":
		return l.Queue + 1
	case l.Algorithm == MinInterval:
		return 1
	}
	return l.Count
}

// Validate reports the first field that makes no sense, as a *LimitError.
//
// It refuses a Period below 1ms with a fraction of a microsecond: Period: 60 is 60
// nanoseconds, and almost always a slip for 60 * time.Second. [ParseLimit] reads such periods,
// because their text has a unit. Compile accepts them.
func (l Limit) Validate() error {
	if _, err := Compile(l, time.Nanosecond); err != nil {
		return err
	}
	if l.slip() && !l.nanoseconds {
		field := "period"
		if l.Algorithm == Concurrent {
			field = "lease"
		}
		return refuse(field, l.Period,
			"1ms or longer, or whole microseconds, such as 60 * time.Second; if nanoseconds are meant, ParseLimit(%q)", l.String())
	}
	return nil
}

// slip reports whether Period is likely a number without a unit.
func (l Limit) slip() bool {
	return 0 < l.Period && l.Period < time.Millisecond && l.Period%time.Microsecond != 0
}

// validate checks the fields one by one; Compile checks the products that it makes of them.
func (l Limit) validate() error {
	k := l.Algorithm.kind()
	switch a := l.Algorithm; {
	case k.compile == nil:
		return refuse("algorithm", fmt.Sprintf("%q", string(a)), "%s", names())
	case l.Count < 1:
		return refuse("count", l.Count, "1 to %d", int64(math.MaxInt64))
	case a == Calendar:
		if err := l.validateCalendar(); err != nil {
			return err
		}
	case l.Period < 1 && a == Concurrent:
		return refuse("lease", l.Period, "1ns or longer")
	case l.Period < 1:
		return refuse("period", l.Period, "1ns or longer")
	case k.most > 0 && l.Count > k.most:
		return refuse("count", l.Count, "1 to %d for %s%s", k.most, a, k.reason)
	}
	return l.validateOptions()
}

func (l Limit) validateOptions() error {
	a, option := l.Algorithm, l.Algorithm.kind().option
	for _, o := range []struct {
		field       string
		value, most int64
		accept      string
	}{
		{"burst", l.Burst, math.MaxInt64, "1 or more (0 in Go: the count)"},
		{"queue", l.Queue, math.MaxInt64 - 1, fmt.Sprintf("1 to %d (0 in Go: the count)", int64(math.MaxInt64-1))},
		{"cells", l.Cells, MaxCells, fmt.Sprintf("1 to %d (0 in Go: %d)", MaxCells, DefaultCells)},
	} {
		switch {
		case o.field != option && o.value != 0:
			return refuse(o.field, o.value, "none for %s", a)
		case o.field == option && (o.value < 1 || o.value > o.most):
			return refuse(o.field, o.value, "%s", o.accept)
		}
	}
	if l.Strict && option != "strict" {
		return refuse("strict", l.Strict, "none for %s", a)
	}
	return l.validateNoCalendar()
}

// validateNoCalendar refuses what is of the calendar where the limit is not.
func (l Limit) validateNoCalendar() error {
	switch a := l.Algorithm; {
	case a == Calendar:
	case l.Unit != "":
		return refuse("unit", strconv.Quote(string(l.Unit)), "none for %s", a)
	case l.Zone != "":
		return refuse("tz", strconv.Quote(l.Zone), "none for %s", a)
	case l.Anchor != 0:
		return refuse("anchor", l.Anchor, "none for %s", a)
	}
	return nil
}
