package swap

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func requestOf(names ...string) *Request {
	r := &Request{}
	for _, name := range names {
		r.Steps = append(r.Steps, Step{Key: Key{Name: name}})
	}
	return r
}

func mustJoin(t interface{ Fatal(args ...any) }, q *queue, c *call) []*call {
	round, err := q.join(c)
	if err != nil {
		t.Fatal(err)
	}
	return round
}

// Whatever comes and goes: no two rounds have a name in common, no call waits while there is no round,
// and nothing is left behind.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue{busy: map[string][]*call{}}
		var rounds [][]*call
		var joined []*call
		waiting := map[*call]bool{}
		start := func(next ...[]*call) {
			for _, round := range next {
				for _, c := range round {
					delete(waiting, c)
				}
				rounds = append(rounds, round)
			}
			has := map[string]int{}
			for i, round := range rounds {
				for _, c := range round {
					for _, name := range c.names {
						if other, taken := has[name]; taken && other != i {
							t.Fatalf("%q is in two rounds", name)
						}
						has[name] = i
					}
				}
			}
			if len(rounds) == 0 && len(waiting) > 0 {
				t.Fatalf("there is no round, and %d wait", len(waiting))
			}
		}
		end := func(i int) {
			round := rounds[i]
			rounds = slices.Delete(rounds, i, i+1)
			start(q.finish(round)...)
		}
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch kind := rapid.IntRange(0, 9).Draw(t, "event"); {
			case kind < 6:
				var names []string
				for range rapid.IntRange(1, 4).Draw(t, "steps") {
					names = append(names, fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "name")))
				}
				c := newCall(requestOf(names...))
				waiting[c], joined = true, append(joined, c)
				if round := mustJoin(t, &q, c); round != nil {
					start(round)
				}
			case kind < 9 && len(rounds) > 0:
				end(rapid.IntRange(0, len(rounds)-1).Draw(t, "round"))
			default:
				if i := slices.IndexFunc(joined, func(c *call) bool { return waiting[c] }); i >= 0 {
					left, next := q.leave(joined[i])
					if !left {
						t.Fatal("a call that waits does not leave")
					}
					delete(waiting, joined[i])
					start(next...)
				}
			}
		}
		for len(rounds) > 0 {
			end(0)
		}
		if len(waiting) > 0 || len(q.busy) > 0 {
			t.Fatalf("%d wait, and %d names are busy", len(waiting), len(q.busy))
		}
	})
}

// Calls on one name go in their order, and those that come while a round is in progress go together.
// The cells that a Decider has found are not used after a wait.
func TestQueueCoalesces(t *testing.T) {
	q := queue{busy: map[string][]*call{}}
	join := func(names ...string) (*call, []*call) {
		c := newCall(requestOf(names...))
		c.Found = []Cell{}
		return c, mustJoin(t, &q, c)
	}
	_, first := join("a", "all")
	if len(first) != 1 || first[0].Found == nil {
		t.Fatalf("a round of %d, want the first alone", len(first))
	}
	var want []*call
	for _, name := range []string{"b", "c", "d", "b"} {
		c, round := join(name, "all")
		if want = append(want, c); round != nil {
			t.Fatalf("%q has a name of the first", name)
		}
	}
	other, round := join("e", "f") // of other names
	if !slices.Equal(round, []*call{other}) {
		t.Errorf("a round of %d, want the other alone", len(round))
	}
	next := q.finish(first)
	if len(next) != 1 || !slices.Equal(next[0], want) || want[0].Found != nil {
		t.Errorf("%d rounds, want one of 4 in their order", len(next))
	}
}

// A round has at most so many steps, and so many names.
func TestRoundsAreBounded(t *testing.T) {
	for _, test := range []struct {
		names func(i int) []string
		most  int
	}{
		{func(int) []string { return []string{"k"} }, mostSteps},
		{func(i int) []string { return []string{"k", fmt.Sprint("of ", i)} }, mostNames - 2}, // and k
	} {
		q := queue{busy: map[string][]*call{}}
		first := mustJoin(t, &q, newCall(requestOf("k")))
		for i := range mostSteps + 1 {
			mustJoin(t, &q, newCall(requestOf(test.names(i)...)))
		}
		next := q.finish(first)
		if len(next) != 1 || len(next[0]) != test.most {
			t.Errorf("%d rounds, the first of %d; want 1 of %d", len(next), len(next[0]), test.most)
		}
	}
}
