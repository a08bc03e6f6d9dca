package algorithm_test

import (
	"math/big"
	"sync"
	"time"
	_ "time/tzdata" // the tests' zones, wherever they run

	"github.com/weirlimit/weir/algorithm"
)

// A civil calendar finds windows by walking over its days, one by one, and its clock, hour by hour and minute by minute.
type civil struct {
	unit   algorithm.Unit
	anchor int64
	loc    *time.Location
}

func newCivil(l algorithm.Limit) civil {
	l = l.Canonical()
	loc, err := time.LoadLocation(l.Zone)
	if err != nil {
		panic(err)
	}
	return civil{l.Unit, l.Anchor, loc}
}

// shown is what clocks show at a second, as if it were UTC's.
func (c civil) shown(second int64) int64 {
	_, offset := time.Unix(second, 0).In(c.loc).Zone()
	return second + int64(offset)
}

// firsts remembers what has been found.
var firsts sync.Map

// first returns the first second at which clocks show this, or something later.
func (c civil) first(wanted int64) int64 {
	type question struct {
		loc    *time.Location
		wanted int64
	}
	if found, ok := firsts.Load(question{c.loc, wanted}); ok {
		return found.(int64)
	}
	const minute, hour, day = 60, 3600, 86400
	at := wanted - 2*day
	for c.shown(at) < wanted {
		at += hour
	}
	still := true // clocks were not set in the day before
	for t := at - day - hour; t < at; t += hour {
		still = still && c.shown(t)-t == c.shown(at)-at
	}
	if still {
		at = wanted - (c.shown(at) - at)
	} else {
		at -= at%minute + day + hour
		for c.shown(at) < wanted {
			at += minute
		}
		at -= minute
		for c.shown(at) < wanted {
			at++
		}
	}
	firsts.Store(question{c.loc, wanted}, at)
	return at
}

// begins reports whether a window begins on this day, at some hour.
func (c civil) begins(day time.Time) bool {
	month, date, last := day.Month(), day.Day(), day.AddDate(0, 0, 1).Day() == 1
	switch c.unit {
	case algorithm.Day:
		return true
	case algorithm.Week:
		return day.Weekday() == time.Weekday(c.anchor%7)
	case algorithm.Month:
		return date == int(c.anchor) || last && date < int(c.anchor)
	}
	if c.anchor == 229 && last && month == time.February {
		return true
	}
	return int(month) == int(c.anchor/100) && date == int(c.anchor%100)
}

// window returns the first nanosecond of the window that a time is in, and of the next.
func (c civil) window(now int64) (start, end int64) {
	second := floor(now, 1, int64(time.Second))
	today := time.Unix(c.shown(second), 0).UTC().Truncate(24 * time.Hour)
	hour := time.Duration(0)
	if c.unit == algorithm.Day {
		hour = time.Duration(c.anchor) * time.Hour
	}
	from := today.AddDate(0, 0, -3)
	for !c.begins(from) || c.first(from.Add(hour).Unix()) > second {
		from = from.AddDate(0, 0, -1)
	}
	for day := from; ; day = day.AddDate(0, 0, 1) {
		if !c.begins(day) {
			continue
		}
		t := c.first(day.Add(hour).Unix())
		if t > second {
			return start * int64(time.Second), t * int64(time.Second)
		}
		start = t
	}
}

// civilWindow is the calendar's limit. Its journal holds the beginnings of windows.
type civilWindow struct {
	count    *big.Int
	calendar civil
	log      journal
}

func (m *civilWindow) begun(now int64) int64 {
	start, _ := m.calendar.window(now)
	return m.log.newest(start)
}

func (m *civilWindow) used(now int64) *big.Int {
	begun := m.begun(now)
	return m.log.sum(func(at int64) bool { return at == begun })
}
func (m *civilWindow) fits(now, cost int64) answer { return fitsWith(m.used(now), cost, m.count) }
func (m *civilWindow) fresh(now int64) answer      { return is(m.used(now).Sign() == 0) }
func (m *civilWindow) admit(now, cost int64)       { m.log.note(m.begun(now), cost) }
