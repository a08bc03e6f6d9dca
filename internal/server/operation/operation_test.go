package operation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/operation"
)

// Each operation has a right, names of its own, and accepts the arguments that it requires.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range operation.List {
		if o.Right == access.None || o.Right == access.All || o.Right == access.Admin {
			t.Errorf("%s needs the right %q", o.Command, o.Right)
		}
		if o.Requires&^o.Accepts != 0 {
			t.Errorf("%s does not accept %s, and requires it", o.Command, (o.Requires &^ o.Accepts).Accepted())
		}
		if o.Reads && (o.Counted || o.Audit != "") {
			t.Errorf("%s reads, and is counted or recorded", o.Command)
		}
		for _, name := range []string{o.Command, o.Path} {
			if name != "" && seen[name] {
				t.Errorf("two operations are %s", name)
			}
			seen[name] = true
		}
		if operation.ByCommand(o.Command) != o || o.Summary == "" || !strings.HasPrefix(o.Command, "weir.") {
			t.Errorf("%+v", o)
		}
	}
	if operation.ByCommand("weir.none") != nil {
		t.Error("an unknown command has an operation")
	}
}

// The times of a call are in the unit of the client, and kept in nanoseconds.
func TestSetConverts(t *testing.T) {
	for _, unit := range []time.Duration{time.Nanosecond, time.Microsecond, time.Second} {
		var c operation.Call
		c.Begin(operation.ByCommand("weir.reserve"))
		for _, a := range []operation.Argument{operation.At, operation.Life, operation.End} {
			if span := a.Span(unit); !span.Has(7000) || !c.Set(a, 7000, unit) {
				t.Errorf("7000 of %v are not accepted: %v", unit, span)
			}
		}
		if n := 7000 * int64(unit); c.At != n || c.Op.Life != n || c.Op.End != n {
			t.Errorf("7000 of %v: %+v", unit, c)
		}
		if unit > time.Nanosecond && c.Set(operation.At, operation.At.Span(unit).Most, unit) {
			t.Errorf("a time beyond all limits is accepted in %v", unit)
		}
	}
}

// The waits that clients see are never too short.
func TestWholeUnits(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, algorithm.Never: -1} {
		if got := operation.WholeUnits(d, time.Microsecond); got != want {
			t.Errorf("%d ns are %d µs, want %d", d, got, want)
		}
	}
}

// Counters have the sum of all counts.
func TestCounters(t *testing.T) {
	var all operation.Counters
	one := operation.Counts{Requests: 1, Allowed: 2, Denied: 3, Errors: 4, Undecided: 5, FailedOpen: 6, Local: 7}
	all.Add(one)
	sum := one
	sum.Add(all.Counts())
	if want := (operation.Counts{Requests: 2, Allowed: 4, Denied: 6, Errors: 8, Undecided: 10, FailedOpen: 12, Local: 14}); sum != want {
		t.Errorf("%+v", sum)
	}
	if all.Set(&sum); all.Counts() != sum {
		t.Errorf("%+v", all.Counts())
	}
}
