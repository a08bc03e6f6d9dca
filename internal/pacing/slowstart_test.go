package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// After the windows of two limits were used up, the slowStart is over when answers have told of both, in one or in several.
func TestComebackIsForEachLimit(t *testing.T) {
	a, b := header.State{Name: "a", Remaining: 9, Within: time.Hour}, header.State{Name: "b", Remaining: 9, Within: time.Hour}
	for i, answers := range [][]Response{{tell(a), tell(b)}, {tell(b), tell(a)}, {tell(a, b)}} {
		v, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
		v.learn(tell(header.State{Name: "a", Within: time.Second}, header.State{Name: "b", Within: 2 * time.Second}), flight{}, now)
		now = now.Add(time.Minute)
		v.expire(now)
		for n, said := range answers {
			if v.back.window == 0 {
				t.Errorf("%d: over after %d answers of %d", i, n, len(answers))
			}
			v.learn(said, flight{number: v.sent + 1}, now)
		}
		if v.back.window != 0 {
			t.Errorf("%d: %+v, want it to be over", i, v.back)
		}
	}
}

// A window that was used up is told of by its name.
func TestComebackAfterAWindow(t *testing.T) {
	for name, width := range map[string]int{"a": 0, "b": 2} {
		v, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
		v.learn(tell(header.State{Name: "a", Within: time.Second}), flight{}, now)
		now = now.Add(time.Minute)
		v.expire(now)
		v.learn(tell(header.State{Name: name, Remaining: 9, Within: time.Hour}), flight{number: v.sent + 1}, now)
		if v.back.window != width {
			t.Errorf("%s: %d may be under way, want %d", name, v.back.window, width)
		}
	}
}

// However many limits a server names, few are kept, and the slowStart is then not over before the next.
func TestComebackIsBounded(t *testing.T) {
	v, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
	all := Response{Outcome: Denied}
	for i := range 10 * mostWindows {
		all.Report.Limits = append(all.Report.Limits, header.State{Name: fmt.Sprint(i), Within: time.Second})
	}
	for range 3 {
		v.learn(all, flight{}, now)
	}
	if len(v.back.pending) != mostWindows || !v.back.unnamed {
		t.Errorf("%d limits are kept: %+v", len(v.back.pending), v.back)
	}
}
