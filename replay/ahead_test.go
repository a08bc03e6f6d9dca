package replay

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Of requests with gaps of any length between them, and a few wrong ones anywhere before the end, exactly the wrong
// ones are moved, and the others come out as if these were not there.
func TestOnlyTheRequestsThatAreAheadAreMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 10
		wrong := rapid.IntRange(0, witnesses/4).Draw(t, "wrong")
		right := rapid.IntRange(wrong+2, 200).Draw(t, "right")
		var seconds []int64
		for at := int64(0); len(seconds) < right; {
			at += rapid.SampledFrom([]int64{0, 0, 1, window, window + 1, 50_000}).Draw(t, "step")
			seconds = append(seconds, at)
		}
		last := seconds[right-1]
		for range wrong {
			place := rapid.IntRange(0, len(seconds)-wrong-2).Draw(t, "place")
			second := last + window + 1 + rapid.Int64Range(0, 1_000_000_000).Draw(t, "ahead")
			seconds = slices.Insert(seconds, place, second)
		}
		out, moves := drain(&order{window: window, most: maxHeld}, seconds)
		if len(moves) != wrong {
			t.Fatalf("%d of %d moved, want %d", len(moves), len(seconds), wrong)
		}
		for _, m := range moves {
			if m.r.second <= last || m.newest.second > last {
				t.Fatalf("moved %+v", m)
			}
		}
		isWrong := func(r request) bool { return seconds[r.place] > last }
		want := slices.DeleteFunc(asRequests(seconds), isWrong)
		if got := slices.DeleteFunc(out, isWrong); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestWhichRequestIsOutOfPlaceIsForMostToSay(t *testing.T) {
	many := func(n int, second int64) []int64 { return slices.Repeat([]int64{second}, n) }
	for name, c := range map[string]struct {
		seconds []int64
		moved   []int64 // places
	}{
		"a gap":                              {slices.Concat(many(100, 0), many(100, 5000)), nil},
		"a gap before the last":              {[]int64{0, 0, 5000}, nil},
		"nothing but gaps":                   {[]int64{0, 5000, 10_000, 15_000}, nil},
		"one in the middle":                  {[]int64{0, 5000, 1}, []int64{1}},
		"one before a gap":                   {[]int64{0, 9000, 5000, 5001}, []int64{1}},
		"thirty in a row":                    {slices.Concat(many(10, 0), many(30, 5000), many(100, 0)), places(10, 40)},
		"the first":                          {[]int64{5000, 0, 1}, []int64{0}},
		"the first two":                      {[]int64{9000, 5000, 0, 0, 0}, []int64{0, 1}},
		"the first of two":                   {[]int64{5000, 0}, []int64{1}},
		"alone":                              {[]int64{5000}, nil},
		"half of the witnesses of the first": {slices.Concat(many(witnesses/2+1, 5000), many(witnesses/2, 0)), places(witnesses/2+1, witnesses+1)},
		"one too late after a gap":           {[]int64{0, 5000, 0, 5000, 5000}, []int64{2}},
	} {
		_, moves := drain(&order{window: 10, most: maxHeld}, c.seconds)
		var got []int64
		for _, m := range moves {
			got = append(got, m.r.place)
		}
		if !slices.Equal(got, c.moved) {
			t.Errorf("%s: %v were moved, want %v", name, got, c.moved)
		}
	}
}

func places(from, to int64) (list []int64) {
	for ; from < to; from++ {
		list = append(list, from)
	}
	return list
}
