package algorithm_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

func moment(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

// TestCalendarEdges: a unit that is taken at a time comes back at the edge, and what was taken just before the edge has gone there.
func TestCalendarEdges(t *testing.T) {
	for _, c := range []struct{ limit, at, edge, name string }{
		{"10000/month", "2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", "a month ends"},
		{"10000/month", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "February"},
		{"10000/month", "2028-02-15T00:00:00Z", "2028-03-01T00:00:00Z", "of a leap year"},
		{"10000/month", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "before 1970"},
		{"10000/month tz=Asia/Tokyo", "2026-01-31T15:00:00Z", "2026-02-28T15:00:00Z", "a month of Tokyo"},
		{"500/day tz=Europe/Berlin anchor=15", "2026-03-28T15:00:00+01:00", "2026-03-29T15:00:00+02:00", "a day of 23 hours"},
		{"500/day tz=Europe/Berlin anchor=15", "2026-10-24T15:00:00+02:00", "2026-10-25T15:00:00+01:00", "a day of 25 hours"},
		{"500/day tz=Europe/Berlin anchor=15", "2026-06-01T14:59:59+02:00", "2026-06-01T15:00:00+02:00", "before the hour"},
		{"1/day tz=Europe/Berlin anchor=2", "2026-03-28T02:00:00+01:00", "2026-03-29T03:00:00+02:00", "the hour is skipped"},
		{"1/day tz=Europe/Berlin anchor=2", "2026-10-24T02:00:00+02:00", "2026-10-25T02:00:00+02:00", "the hour comes twice: the first"},
		{"1/day tz=Europe/Berlin anchor=2", "2026-10-25T02:00:00+01:00", "2026-10-26T02:00:00+01:00", "the hour comes twice: the second is of the day"},
		{"1/day tz=America/Sao_Paulo", "2017-10-14T12:00:00-03:00", "2017-10-15T01:00:00-02:00", "midnight is skipped"},
		{"1/day tz=America/Sao_Paulo", "2018-02-17T12:00:00-02:00", "2018-02-18T00:00:00-03:00", "23 o'clock comes twice"},
		{"1/day tz=Asia/Beirut", "2022-03-26T12:00:00+02:00", "2022-03-27T01:00:00+03:00", "midnight is skipped in Beirut"},
		{"1/day tz=Africa/Cairo", "2023-04-27T12:00:00+02:00", "2023-04-28T01:00:00+03:00", "midnight is skipped in Cairo"},
		{"1/day tz=America/Havana", "2022-03-12T12:00:00-05:00", "2022-03-13T01:00:00-04:00", "midnight is skipped in Havana"},
		{"1/day tz=America/Havana", "2022-11-05T12:00:00-04:00", "2022-11-06T00:00:00-04:00", "midnight comes twice in Havana"},
		{"1/day tz=America/Havana", "2022-11-06T00:00:00-05:00", "2022-11-07T00:00:00-05:00", "the second midnight in Havana is of the day"},
		{"1/day tz=Australia/Lord_Howe anchor=2", "2022-10-01T12:00:00+10:30", "2022-10-02T02:30:00+11:00", "set by half an hour"},
		{"1/day tz=Asia/Kathmandu", "2022-10-01T12:00:00+05:45", "2022-10-02T00:00:00+05:45", "an offset of three quarters"},
		{"1/day tz=Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "a day is skipped"},
		{"1/day tz=Pacific/Apia anchor=12", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "half of each of two"},
		{"1/week", "2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z", "a week ends on Sunday"},
		{"1/week anchor=7", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "and elsewhere on Saturday"},
		{"1/month anchor=31", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z", "the 31st of February is its last day"},
		{"1/month anchor=31", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z", "and the next the 31st again"},
		{"1/month anchor=30", "2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z", "the 30th in a leap year"},
		{"1/month anchor=15", "2026-01-14T23:59:59Z", "2026-01-15T00:00:00Z", "the 15th"},
		{"1/year", "2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z", "a year"},
		{"1/year anchor=02-29", "2027-06-01T00:00:00Z", "2028-02-29T00:00:00Z", "a leap day"},
		{"1/year anchor=02-29", "2026-06-01T00:00:00Z", "2027-02-28T00:00:00Z", "no leap day"},
		{"1/year anchor=04-06 tz=Europe/London", "2026-01-01T00:00:00Z", "2026-04-06T00:00:00+01:00", "a tax year"},
	} {
		p := compile(t, algorithm.MustParseLimit(c.limit))
		at, edge := moment(t, c.at), moment(t, c.edge)
		state, r := p.Apply(nil, algorithm.Op{Cost: p.Limit().Count}, at)
		if !r.Allowed || int64(r.ResetAfter) != edge-at {
			t.Errorf("%s: %v at %s: until %v, want %s", c.name, c.limit, c.at, time.Unix(0, at).UTC().Add(r.ResetAfter), c.edge)
		}
		if _, r = p.Apply(slices.Clone(state), algorithm.Op{Cost: 1}, edge-1); r.Allowed || r.RetryAfter != 1 {
			t.Errorf("%s: before the edge: %+v", c.name, r)
		}
		if _, r = p.Apply(state, algorithm.Op{Cost: 1}, edge); !r.Allowed || r.Remaining != p.Limit().Count-1 {
			t.Errorf("%s: at the edge: %+v", c.name, r)
		}
	}
}

// TestCalendarWindowsAreContiguous: from a time on, each edge is the beginning of the window that ends with the next, as the slow calendar has it, and no
// window is empty.
func TestCalendarWindowsAreContiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limits(algorithm.Calendar).Draw(t, "limit").Canonical()
		p, slow := compile(t, l), newCivil(l)
		now := rapid.Int64Range(-algorithm.MaxTime, algorithm.MaxTime).Draw(t, "now")
		for range 8 {
			start, end := slow.window(now)
			_, r := p.Apply(nil, algorithm.Op{Cost: 1}, now)
			edges := p.Windows(now)
			if int64(r.ResetAfter) != end-now || edges[1] != start || edges[2] != end || !slices.IsSorted(edges) {
				t.Fatalf("%v at %v: until %d, edges %d; want [%d, %d)", l, time.Unix(0, now).UTC(), now+int64(r.ResetAfter), edges, start, end)
			}
			if before, _ := slow.window(start - 1); edges[0] != before {
				t.Fatalf("%v at %v: the window before begins at %d, want %d", l, time.Unix(0, now).UTC(), edges[0], before)
			}
			if now = end - int64(rapid.IntRange(0, 1).Draw(t, "before the edge")); now > algorithm.MaxTime {
				return
			}
		}
	})
}

// A window that began in a future of years is brought back; one that is about to begin again is left alone.
func TestCalendarOfAStoredFuture(t *testing.T) {
	p := play(t, "2/month")
	now := moment(t, "2026-03-15T00:00:00Z")
	p.take(2, now+366*int64(day))
	if !p.program.Heal(p.state, now) || p.program.Heal(p.state, now) {
		t.Error("not healed once")
	}
	if r := p.take(1, now); r.Allowed || now+int64(r.RetryAfter) != moment(t, "2026-04-01T00:00:00Z") {
		t.Errorf("healed to %+v", r)
	}
	p.state = nil
	p.take(1, moment(t, "2026-04-01T00:00:00Z"))
	if p.program.Heal(p.state, now) {
		t.Error("the next window is healed")
	}
}

// Other rules of a time zone, in another process, may have a window begin later by an hour: it is the same window.
func TestCalendarOfOtherRules(t *testing.T) {
	p := play(t, "10/day tz=Europe/Berlin")
	start := moment(t, "2026-06-01T00:00:00+02:00")
	p.state = []int64{start + 3600*sec, 4}
	if r := p.take(1, start+10*sec); r.Remaining != 5 {
		t.Errorf("%+v", r)
	}
}

// A name that is no zone's own would be another limit of the same windows, and there is no end of such names.
func TestCalendarZonesHaveOneName(t *testing.T) {
	for _, zone := range []string{
		"Local", "local", "Europe//Berlin", "Europe/./Berlin", "/Europe/Berlin", "Europe/Berlin/", "../Berlin", "posix/Europe/Berlin", "right/Europe/Berlin",
		"Mars/Olympus", "Europe/Berlin\x00", "zone.tab", "CEST-2",
	} {
		var refused *algorithm.LimitError
		err := algorithm.Limit{Algorithm: algorithm.Calendar, Count: 1, Unit: algorithm.Day, Zone: zone}.Validate()
		if !errors.As(err, &refused) || refused.Field != "tz" {
			t.Errorf("%q: %v", zone, err)
		}
	}
}
