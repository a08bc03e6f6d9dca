package replay

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drain gives seconds to an order and returns what comes out, and how many were late.
func drain(o *order, seconds []int64) (out []request, late int) {
	for i, s := range seconds {
		if o.push(request{second: s, place: int64(i)}) > 0 {
			late++
		}
		for o.ready() {
			out = append(out, o.pop())
		}
	}
	for o.ended = true; o.ready(); {
		out = append(out, o.pop())
	}
	return out, late
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
		out, late := drain(&order{window: window, most: maxHeld}, seconds)
		var want []request
		for i, s := range seconds {
			want = append(want, request{second: s, place: int64(i)})
		}
		slices.SortStableFunc(want, func(a, b request) int { return cmp.Compare(a.second, b.second) })
		if late != 0 || !slices.Equal(out, want) {
			t.Fatalf("%d late; got %v, want %v", late, out, want)
		}
	})
}

func TestWhateverComesAllOfItComesOutInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &order{window: rapid.Int64Range(0, 5).Draw(t, "window"), most: rapid.IntRange(1, 8).Draw(t, "most")}
		seconds := rapid.SliceOf(rapid.Int64Range(0, 30)).Draw(t, "seconds")
		out, late := drain(o, seconds)
		if len(out) != len(seconds) {
			t.Fatalf("%d of %d came out", len(out), len(seconds))
		}
		moved := 0
		for i, r := range out {
			if i > 0 && r.before(out[i-1]) {
				t.Fatalf("%v after %v", r, out[i-1])
			}
			if own := seconds[r.place]; own != r.second {
				moved++
				if newest := slices.Max(seconds[:r.place]); r.second != newest {
					t.Fatalf("late request at %d, want the newest time seen, %d", r.second, newest)
				}
			}
		}
		if moved != late {
			t.Fatalf("%d were moved, %d reported", moved, late)
		}
	})
}

func TestOneSecondBeyondTheWindowIsLate(t *testing.T) {
	for _, c := range []struct {
		behind int64
		want   int
	}{{10, 0}, {11, 1}} {
		if _, late := drain(&order{window: 10, most: maxHeld}, []int64{100, 100 - c.behind}); late != c.want {
			t.Errorf("%d s behind: %d late, want %d", c.behind, late, c.want)
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
		if len(o.held) > 3 {
			t.Fatalf("%d held", len(o.held))
		}
	}
}
