package replay

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A move is what an order says of a request that it could not put in its place.
type move struct{ r, newest request }

// drain gives seconds to an order and returns what comes out, and what was moved.
func drain(o *order, seconds []int64) (out []request, moves []move) {
	o.misplaced = func(r, newest request) { moves = append(moves, move{r, newest}) }
	for i, s := range seconds {
		o.push(request{second: s, place: int64(i)})
		for o.ready() {
			out = append(out, o.pop())
		}
	}
	for o.end(); o.ready(); {
		out = append(out, o.pop())
	}
	return out, moves
}

// asRequests are seconds as they are pushed, in the order of time.
func asRequests(seconds []int64) (list []request) {
	for i, s := range seconds {
		list = append(list, request{second: s, place: int64(i)})
	}
	slices.SortStableFunc(list, func(a, b request) int { return cmp.Compare(a.second, b.second) })
	return list
}

func TestWithinTheWindowTheOrderIsThatOfAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(0, 10).Draw(t, "window")
		var seconds []int64
		newest := rapid.Int64Range(-5, 5).Draw(t, "first")
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			newest += rapid.Int64Range(0, 3).Draw(t, "step")
			behind := min(window, rapid.Int64Range(0, 10).Draw(t, "behind"))
			if len(seconds) == 0 {
				behind = 0
			}
			seconds = append(seconds, newest-behind)
			if behind > 0 { // the newest is only seen when it comes
				newest = slices.Max(seconds)
			}
		}
		out, moves := drain(&order{window: window, most: maxHeld}, seconds)
		if want := asRequests(seconds); len(moves) != 0 || !slices.Equal(out, want) {
			t.Fatalf("%v moved; got %v, want %v", moves, out, want)
		}
	})
}

func TestWhateverComesAllOfItComesOutInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &order{window: rapid.Int64Range(0, 5).Draw(t, "window"), most: rapid.IntRange(1, 8).Draw(t, "most")}
		seconds := rapid.SliceOfN(rapid.Int64Range(-5, 30), 0, 200).Draw(t, "seconds")
		out, moves := drain(o, seconds)
		if len(out) != len(seconds) {
			t.Fatalf("%d of %d came out", len(out), len(seconds))
		}
		moved := map[int64]move{}
		for _, m := range moves {
			if seconds[m.r.place] != m.r.second || seconds[m.newest.place] != m.newest.second || m.r.second == m.newest.second {
				t.Fatalf("moved %+v", m)
			}
			moved[m.r.place] = m
		}
		for i, r := range out {
			if i > 0 && r.before(out[i-1]) {
				t.Fatalf("%v after %v", r, out[i-1])
			}
			want := seconds[r.place]
			if m, ok := moved[r.place]; ok {
				want = m.newest.second
			}
			if r.second != want {
				t.Fatalf("%v, want second %d", r, want)
			}
		}
	})
}

func TestOneSecondBeyondTheWindowIsLate(t *testing.T) {
	for _, c := range []struct {
		behind int64
		want   int
	}{{10, 0}, {11, 1}} {
		_, moves := drain(&order{window: 10, most: maxHeld}, []int64{100, 100 - c.behind})
		if len(moves) != c.want || c.want > 0 && moves[0].r.place != 1 {
			t.Errorf("%d s behind: %v moved, want %d", c.behind, moves, c.want)
		}
	}
}

func TestNoMoreThanTheMostAreHeld(t *testing.T) {
	o := &order{window: 1000, most: 3}
	for i := range int64(100) {
		o.push(request{second: i})
		for o.ready() {
			o.pop()
		}
		if len(o.held) > 3 || len(o.waiting) > witnesses {
			t.Fatalf("%d held, %d waiting", len(o.held), len(o.waiting))
		}
	}
}
