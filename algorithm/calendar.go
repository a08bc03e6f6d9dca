package algorithm

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Calendar counts the units of the current day, week, month or year of a calendar, in a time zone, and denies what would
// bring the count above Count. It is [FixedWindow] on the grid that people live by: a day has 23 to 25 hours, a month 28 to 31 days. What is
// a window's first instant where clocks are set is said at [Unit].
//
//   - Bound: 2q in any interval that is shorter than the shortest window: q just before an edge of the grid and q just after.
//   - Reaction: q units, or 2q if an edge comes between.
//   - State: two words, the window's first instant and its count.
//   - Use: for quotas that are sold by the month, and those that people read on a calendar or a bill.
//   - Source: E. M. Reingold and N. Dershowitz, "Calendrical Calculations", 1997, on units of unequal length; the time zones are IANA's.
const Calendar Algorithm = "calendar"

// A Unit is one of the calendar's. Each begins at its first instant on the clocks of the time zone: where they are set forward over it,
// at the instant at which they are set; where they show it twice, at the first time.
//
// The Anchor moves the beginning:
//
//   - day: the hour, 0 (the default) to 23.
//   - week: the day, 1 for Monday (the default) to 7 for Sunday.
//   - month: the day, 1 (the default) to 31; in a month that has no such day, its last.
//   - year: the month and day, 101 (the default) to 1231, written 01-01 to 12-31; 02-29 is 02-28 in other years.
type Unit string

// The units of the calendar.
const (
	Day   Unit = "day"
	Week  Unit = "week"
	Month Unit = "month"
	Year  Unit = "year"
)

const (
	utc           = "UTC"
	unitsAccepted = "day, week, month or year"
	zoneAccepted  = "the IANA's name of a time zone, such as Europe/Berlin or UTC"
)

func (u Unit) known() bool { return u == Day || u == Week || u == Month || u == Year }

// anchor is where the calendar has the unit begin.
func (u Unit) anchor() int64 {
	switch u {
	case Week, Month:
		return 1
	case Year:
		return 101
	}
	return 0
}

// nominal is the unit's length for who needs a number: that of most days and years, and of the shortest of the long months.
func (u Unit) nominal() time.Duration {
	const day = 24 * time.Hour
	switch u {
	case Day:
		return day
	case Week:
		return 7 * day
	case Month:
		return 30 * day
	case Year:
		return 365 * day
	}
	return 0
}

// parseAnchor reads an anchor as the limit text has it.
func (u Unit) parseAnchor(text string) (int64, error) {
	month, day, both := strings.Cut(text, "-")
	m, err := strconv.ParseInt(month, 10, 16)
	anchor := m
	if u == Year {
		var d int64
		if d, err = strconv.ParseInt(day, 10, 16); err == nil && both && len(month) == 2 && len(day) == 2 {
			anchor = 100*m + d
		} else {
			anchor = -1
		}
	}
	if err != nil || !u.takes(anchor) {
		return 0, refuse("anchor", strconv.Quote(text), "%s", u.anchors())
	}
	return anchor, nil
}

// takes reports whether an anchor is one of the unit's.
func (u Unit) takes(anchor int64) bool {
	switch u {
	case Day:
		return 0 <= anchor && anchor <= 23
	case Week:
		return 1 <= anchor && anchor <= 7
	case Month:
		return 1 <= anchor && anchor <= 31
	case Year:
		const leap = 2000
		month, day := time.Month(anchor/100), int(anchor%100)
		return time.January <= month && month <= time.December && 1 <= day && day <= daysIn(leap, month)
	}
	return false
}

func (u Unit) anchors() string {
	switch u {
	case Day:
		return "the hour at which a day begins, 0 to 23"
	case Week:
		return "the day on which a week begins, 1 (Monday) to 7 (Sunday)"
	case Month:
		return "the day on which a month begins, 1 to 31"
	case Year:
		return "the day on which a year begins, 01-01 to 12-31"
	}
	return "none but for " + unitsAccepted
}

// calendarText is what follows the count in the limit text.
func (l Limit) calendarText() string {
	text := "/" + string(l.Unit)
	if l.Zone != utc {
		text += " tz=" + l.Zone
	}
	switch {
	case l.Anchor == l.Unit.anchor():
	case l.Unit == Year:
		text += fmt.Sprintf(" anchor=%02d-%02d", l.Anchor/100, l.Anchor%100)
	default:
		text += " anchor=" + strconv.FormatInt(l.Anchor, 10)
	}
	return text
}

// canonicalCalendar fills in the defaults of a calendar limit.
func (l Limit) canonicalCalendar() Limit {
	if l.Zone == "" {
		l.Zone = utc
	}
	if l.Anchor == 0 {
		l.Anchor = l.Unit.anchor()
	}
	if l.Period == 0 {
		l.Period = l.Unit.nominal()
	}
	return l
}

// validateCalendar checks the fields of a canonical calendar limit.
func (l Limit) validateCalendar() error {
	switch {
	case !l.Unit.known():
		return refuse("unit", strconv.Quote(string(l.Unit)), unitsAccepted)
	case l.Period != l.Unit.nominal():
		return refuse("period", l.Period, "none for a %s of the calendar", l.Unit)
	case !l.Unit.takes(l.Anchor):
		return refuse("anchor", l.Anchor, "%s", l.Unit.anchors())
	}
	_, err := location(l.Zone)
	return err
}

// locations are the time zones that were asked for: there are some hundreds of them.
var locations sync.Map

func location(zone string) (*time.Location, error) {
	if found, ok := locations.Load(zone); ok {
		return found.(*time.Location), nil //nolint:forcetypeassert // nothing else is put there
	}
	var loc *time.Location
	err := errZone
	if zoneName.MatchString(zone) && zone != "Local" {
		loc, err = time.LoadLocation(zone)
	}
	if err != nil {
		return nil, refuse("tz", quoteShort(zone), "%s", zoneAccepted)
	}
	locations.Store(zone, loc)
	return loc, nil
}

// The IANA's names are of this form. Other paths lead to the same zones by many ways, or to what is the machine's own.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`)

var errZone = errors.New("no name of a time zone")

// quoteShort quotes what may be long.
func quoteShort(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// calendar counts the units of the current window of a calendar.
//
// State: the window's first instant, the units used in it.
type calendar struct {
	count  int64
	unit   Unit
	anchor int64
	loc    *time.Location
	second int64 // in ticks

	latest *atomic.Pointer[window] // that was worked out: most times are in one
}

// A window of the calendar is [start, end), in ticks.
type window struct{ start, end int64 }

func newCalendar(l Limit, tick int64) (calendar, error) {
	loc, err := location(l.Zone)
	return calendar{
		count: l.Count, unit: l.Unit, anchor: l.Anchor, loc: loc, second: int64(time.Second) / tick, latest: new(atomic.Pointer[window]),
	}, err
}

func (m calendar) take(state []int64, cost, now int64) ([]int64, Decision) {
	w, used := m.at(state, now)
	d := Decision{Allowed: cost <= m.count-used || cost == 0}
	switch {
	case !d.Allowed:
		d.RetryAfter = time.Duration(w.end - now)
	case cost > 0:
		used += cost
		state = append(state[:0], w.start, used)
	}
	d.Remaining = max(0, m.count-used)
	if used > 0 {
		d.ResetAfter = time.Duration(w.end - now)
	}
	return state, d
}

// at returns the window that now is in, or the state's if that is later, and what was used in it.
func (m calendar) at(state []int64, now int64) (w window, used int64) {
	w = m.window(now)
	switch {
	case len(state) == 0 || state[0] < w.start:
		return w, 0
	case state[0] >= w.end: // a time before the window is charged to the window
		return m.window(state[0]), state[1]
	}
	return w, state[1] // also if other rules of the time zone had it begin somewhat later
}

// window returns the window that a time is in.
func (m calendar) window(now int64) window {
	if w := m.latest.Load(); w != nil && w.start <= now && now < w.end {
		return *w
	}
	at := time.Unix(floorDiv(now, m.second), 0).In(m.loc)
	i := 0
	for m.edge(at, i) > now {
		i--
	}
	for m.edge(at, i+1) <= now {
		i++
	}
	w := &window{m.edge(at, i), m.edge(at, i+1)}
	m.latest.Store(w)
	return *w
}

// Windows returns the edges of a calendar's windows around now: of the one that it is in, the one before and the one after. Other limits have none.
func (p *Program) Windows(now int64) []int64 {
	m, ok := p.machine.(calendar)
	if !ok {
		return nil
	}
	w := m.window(now)
	before, after := m.window(w.start-1), m.window(w.end)
	m.latest.Store(&w)
	return []int64{before.start, w.start, w.end, after.end}
}

// edge returns the first instant of the window that is i after the one that begins in the unit of at.
func (m calendar) edge(at time.Time, i int) int64 {
	year, month, day := at.Date()
	switch m.unit {
	case Day:
		return m.first(year, month, day+i, int(m.anchor))
	case Week:
		since := (int(at.Weekday()) - int(m.anchor) + 7) % 7
		return m.first(year, month, day-since+7*i, 0)
	case Month:
		year, month = normal(year, month, i)
		return m.first(year, month, min(int(m.anchor), daysIn(year, month)), 0)
	}
	month = time.Month(m.anchor / 100)
	return m.first(year+i, month, min(int(m.anchor%100), daysIn(year+i, month)), 0)
}

// normal returns the month that is i after another.
func normal(year int, month time.Month, i int) (int, time.Month) {
	first := time.Date(year, month+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
	return first.Year(), first.Month()
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// first returns the first instant at which clocks of the time zone show an hour of a day, or a later one.
func (m calendar) first(year int, month time.Month, day, hour int) int64 {
	wanted := time.Date(year, month, day, hour, 0, 0, 0, time.UTC) // what clocks show, as if it were UTC
	t := time.Date(year, month, day, hour, 0, 0, 0, m.loc)
	_, offset := t.Zone()
	from, until := t.ZoneBounds()
	switch shown := t.Unix() + int64(offset); {
	case shown > wanted.Unix(): // it was skipped when this offset began
		t = from
	case shown < wanted.Unix(): // and here when the next did
		t = until
	case !from.IsZero():
		_, before := from.Add(-time.Second).Zone()
		if twice := wanted.Add(-time.Duration(before) * time.Second); twice.Before(from) {
			t = twice
		}
	}
	return t.Unix() * m.second
}

func (m calendar) refund(state []int64, cost, now int64) []int64 {
	if w, used := m.at(state, now); used > cost {
		return append(state[:0], max(w.start, state[0]), used-cost)
	}
	return state[:0]
}

func (m calendar) convert(u usage, now int64) []int64 {
	return []int64{m.window(now).start, u.units}
}

func (m calendar) heal(state []int64, now int64) bool {
	w := m.window(now)
	if state[0] <= w.end {
		return false
	}
	state[0], state[1] = w.start, m.count
	return true
}

func (m calendar) valid(state []int64, farthest int64) bool {
	return len(state) == 2 && within(state[0], farthest) && counts(state[1:], m.count)
}
