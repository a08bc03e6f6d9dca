package algorithm

import "fmt"

// Note returns a sentence about the difference between the limit and a limit of similar text, or ""
// if there is none: 500/day restarts each day of the calendar, 500/24h does not. So does a week.
// A limit with a zone or an anchor has no note.
func (l Limit) Note() string {
	l = l.Canonical()
	for _, unit := range []Unit{Day, Week} {
		calendar := Limit{Algorithm: Calendar, Count: l.Count, Unit: unit}.Canonical()
		begins := "each day at 00:00 UTC"
		if unit == Week {
			begins = "each Monday at 00:00 UTC"
		}
		switch {
		case l.Period != unit.nominal() || l.Algorithm == Concurrent:
		case l.Algorithm == FixedWindow && unit == Day: // both begin at midnight UTC
		case l == calendar:
			other := Limit{Count: l.Count, Period: l.Period}
			return fmt.Sprintf("%v begins anew %s; %v is a token bucket, which refills continuously", l, begins, other)
		case l.Algorithm != Calendar:
			return fmt.Sprintf("%v is not tied to the calendar; %v begins anew %s", l, calendar, begins)
		}
	}
	return ""
}
