package redis

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes and goes: no two flights have a name in common, a flight takes what waits for its names alone, nobody waits when nothing flies, and nothing is
// left behind.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lines{busy: map[string][]*waiter{}}
		var flying [][]*waiter
		var joined []*waiter
		waiting := map[*waiter]bool{}
		start := func(flights ...[]*waiter) {
			for _, flight := range flights {
				for _, w := range flight {
					delete(waiting, w)
				}
				flying = append(flying, flight)
			}
			has := map[string]int{}
			for i, flight := range flying {
				for _, w := range flight {
					for _, name := range w.names {
						if other, taken := has[name]; taken && other != i {
							t.Fatalf("%q is in two flights", name)
						}
						has[name] = i
					}
				}
			}
			if len(flying) == 0 && len(waiting) > 0 {
				t.Fatalf("nothing flies, and %d wait", len(waiting))
			}
		}
		end := func(i int) {
			flight := flying[i]
			flying = slices.Delete(flying, i, i+1)
			start(l.end(flight)...)
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch kind := rapid.IntRange(0, 9).Draw(t, "event"); {
			case kind < 6:
				q := &request{}
				for range rapid.IntRange(1, 4).Draw(t, "steps") {
					q.steps = append(q.steps, step{name: fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "name"))})
				}
				w := newWaiter(q, nil)
				waiting[w], joined = true, append(joined, w)
				if flight := l.join(w); flight != nil {
					start(flight)
				}
			case kind < 9 && len(flying) > 0:
				end(rapid.IntRange(0, len(flying)-1).Draw(t, "flight"))
			default:
				if i := slices.IndexFunc(joined, func(w *waiter) bool { return waiting[w] }); i >= 0 {
					w := joined[i]
					left, flights := l.leave(w)
					if !left {
						t.Fatal("one that waits does not leave")
					}
					delete(waiting, w)
					start(flights...)
				}
			}
		}
		for len(flying) > 0 {
			end(0)
		}
		if len(waiting) > 0 || len(l.busy) > 0 {
			t.Fatalf("%d wait, and %d names are busy", len(waiting), len(l.busy))
		}
	})
}

// What comes while a swap is under way is carried out by the next one, together.
func TestLinesGather(t *testing.T) {
	l := lines{busy: map[string][]*waiter{}}
	request := func(names ...string) *waiter {
		q := &request{}
		for _, name := range names {
			q.steps = append(q.steps, step{name: name})
		}
		return newWaiter(q, &reply{})
	}
	first := l.join(request("a", "all"))
	if len(first) != 1 || first[0].found == nil {
		t.Fatalf("%d fly, want 1, which is the first", len(first))
	}
	for _, name := range []string{"b", "c", "d", "b"} {
		if flight := l.join(request(name, "all")); flight != nil {
			t.Fatalf("%q has what another has", name)
		}
	}
	if next := l.end(first); len(next) != 1 || len(next[0]) != 4 || next[0][0].found != nil {
		t.Errorf("%d flights, want one of 4", len(next))
	}
}
