package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

// heads of each part, of programs of microseconds, with a state that belongs to them.
var heads = []struct {
	head  string
	state []int64
}{
	{"100/1m", []int64{1_700_000_000_000_000}},
	{"7/1s", []int64{1_700_000_000_000_000, 3}},
	{"10/day tz=Europe/Berlin anchor=15", []int64{1_700_000_000_000_000, 3}},
	{"concurrent 10 lease=30s", []int64{1_700_000_000_000_000, 3}},
	{"100/1m;was=50/1m|0|1700000060000000|1700000000000000", []int64{1_700_000_000_000_000}},
	{"100/1m;was=fixed-window 50/1m|0|1700000060000000|", nil},
	{"concurrent 10 lease=30s;lease=60000000", []int64{1_700_000_000_000_000, 3}},
	{"100/1m;owed=3,1700000000000000", []int64{1_700_000_000_000_000}},
	{"100/1m;hold=7,10,1700000000000000,1700000006000000,90,1700000060000000;hold=-8,0,1,2,3,1700000060000001", []int64{1_700_000_000_000_000}},
	{
		"100/1m;was=7/1s|0|1|5,6;was=hybrid 5/1s|0|2|0,1,2;was=10/day|0|3|4,5;owed=102400,-1;hold=1,1,1,1,1,1",
		[]int64{1_700_000_000_000_000},
	},
}

func TestHeadsAreReadBack(t *testing.T) {
	p := program(t, "100/1m")
	for _, h := range heads {
		a, err := algorithm.ReadHead(p, h.head, h.state)
		if err != nil {
			t.Errorf("%s: %v", h.head, err)
			continue
		}
		if a.Head() != h.head || !slices.Equal(a.State, h.state) {
			t.Errorf("%s is read as %s %d", h.head, a.Head(), a.State)
		}
		if plain := h.head == p.Head(); a.Plain(p) != plain || plain && a.Program != p {
			t.Errorf("%s: plain is %v", h.head, a.Plain(p))
		}
	}
	if a, err := algorithm.ReadHead(p, "", nil); err != nil || a.Program != nil || !a.Plain(p) {
		t.Errorf("of a key never seen: %+v, %v", a, err)
	}
}

func TestWhatIsNoHeadIsRefused(t *testing.T) {
	p := program(t, "100/1m")
	state := []int64{1_700_000_000_000_000}
	for head, want := range map[string]string{
		"":                       "count/period",
		"100/0s":                 "period",
		"fixed-window 1/1500ns":  "whole number of 1µs",
		"100/1m;":                "accepted: owed and lease",
		"100/1m;over=1,2":        "accepted: owed and lease",
		"100/1m;was":             "apart by |",
		"100/1m;was=1/1m|0|1":    "apart by |",
		"100/1m;was=x|0|1|1":     "count/period",
		"100/1m;was=1/1m|-1|1|1": "0 or more units",
		"100/1m;was=1/1m|0|9223372036854775807|1":            "a time",
		"100/1m;was=1/1m|0|1|x":                              "1 whole numbers",
		"100/1m;was=1/1m|0|1|1,2":                            "none that 1/1m makes",
		"100/1m" + strings.Repeat(";was=1/1m|0|1|1", 4):      "accepted: owed and lease",
		"100/1m;lease=0":                                     "lease is",
		"100/1m;lease=1;lease=1":                             "owed and lease",
		"100/1m;owed=0,1":                                    "units of 1 or more",
		"100/1m;owed=1":                                      "2 whole numbers",
		"100/1m;owed=1,9223372036854775807":                  "and a time",
		"100/1m;owed=102401,1":                               "up to 102400 of 100/1m",
		"100/1m;owed=1,1;owed=1,1":                           "owed and lease",
		"100/1m;hold=1,2,3,4,5":                              "6 whole numbers",
		"100/1m;hold=1,-2,3,4,5,6":                           "an ID, units",
		"100/1m;hold=1,2,3,4,-5,6":                           "an ID, units",
		"100/1m;hold=1,2,9223372036854775807,4,5,6":          "an ID, units",
		"100/1m;hold=1,2,3,-9223372036854775807,5,6":         "an ID, units",
		"100/1m;hold=1,2,3,4,5,7;hold=1,2,3,4,5,6":           "in which they expire",
		"100/1m" + strings.Repeat(";hold=1,2,3,4,5,6", 1025): "up to 1024 of hold",
		strings.Repeat("x", 600<<10):                         "accepted: up to",
	} {
		_, err := algorithm.ReadHead(p, head, state)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
			t.Errorf("%.60s: %.300v, want %q", head, err, want)
		}
	}
	if _, err := algorithm.ReadHead(p, "fixed-window 10/1m", []int64{1, 2, 3}); err == nil {
		t.Error("a state of three words for a limit of two is accepted")
	}
}

// FuzzReadHead: what is read is written back the same, bears every operation, and is read again after it; all else is an error, which is short.
func FuzzReadHead(f *testing.F) {
	for _, h := range heads {
		words := [3]int64{}
		copy(words[:], h.state)
		f.Add(h.head, len(h.state), words[0], words[1], words[2], uint8(0), int64(1), int64(1_700_000_000_000_001))
	}
	f.Fuzz(func(t *testing.T, head string, n int, first, second, third int64, kind uint8, cost, now int64) {
		p := program(t, "100/1m")
		a, err := algorithm.ReadHead(p, head, []int64{first, second, third}[:min(uint(n), 3)])
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, err := algorithm.ReadHead(p, a.Head(), a.State)
		if err != nil || again.Head() != a.Head() {
			t.Fatalf("%q is read, and written as %q: %v", head, a.Head(), err)
		}
		most := algorithm.MaxTime / 1000
		now = max(-most, min(most, now))
		if kind > 100 {
			a.Heal(now)
		}
		a.Life(now)
		a, _ = a.Apply(p, algorithm.Op{
			Kind: everyKind[int(kind)%len(everyKind)], Cost: max(0, cost), ID: 1 + cost%3, Life: 1 + max(0, cost)/2, End: now,
		}, now)
		if _, err := algorithm.ReadHead(p, a.Head(), a.State); err != nil {
			t.Fatalf("%q, then %q %d: %v", head, a.Head(), a.State, err)
		}
	})
}

// TestRecordsWithPreviousLimits: the first operation decides by the limit under which most units are used, and drops the others.
func TestRecordsWithPreviousLimits(t *testing.T) {
	const now, later = int64(1_700_000_000_000_000), "1800000000000000"
	ten, twenty := program(t, "10/1h"), program(t, "20/1h")
	full := []int64{now + int64(3600e6)} // under both
	for head, want := range map[string]struct {
		under     string
		remaining int64
	}{
		"10/1h;was=20/1h|0|" + later + "|1700003600000000":                         {"20/1h", 0},
		"10/1h;was=20/1h|0|1|1700003600000000":                                     {"10/1h", 10}, // whose time is over
		"10/1h;was=20/1h|0|" + later + "|":                                         {"10/1h", 10},
		"10/1h;was=15/1h|7|" + later + "|1700003600000000":                         {"15/1h", 5},
		"10/1h;was=quota-reset 12/1h|0|" + later + "|1700000000000000,12;owed=2,1": {"quota-reset 12/1h", 0},
	} {
		a, err := algorithm.ReadHead(twenty, head, slices.Clone(full))
		if err != nil {
			t.Fatal(err)
		}
		if _, r := a.Apply(twenty, algorithm.Op{}, now); r.Remaining != want.remaining {
			t.Errorf("%s: %+v, want %d left", head, r, want.remaining)
		}
		for _, p := range []*algorithm.Program{ten, twenty} {
			after, _ := a.Apply(p, algorithm.Op{Kind: algorithm.Refund, Cost: 1}, now)
			if text := after.Program.Limit().String(); text != want.under || strings.Contains(after.Head(), "was") {
				t.Errorf("%s is written as %s, want a record of %s", head, after.Head(), want.under)
			}
		}
	}
	short, long := program(t, "concurrent 3 lease=1s"), program(t, "concurrent 3 lease=1h")
	a, err := algorithm.ReadHead(short, "concurrent 3 lease=1s;was=concurrent 3 lease=1h|0|"+later+"|1700000000000000,1", []int64{now + 3599e6, 1})
	if err != nil || a.Heal(now) {
		t.Fatalf("a lease of the limit before is healed, or refused: %v", err)
	}
	if _, r := a.Apply(long, algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: now + 3600e6}, now+1); r.Granted != 1 || r.Remaining != 3 {
		t.Errorf("a release of a lease of the limit before: %+v", r)
	}
}
