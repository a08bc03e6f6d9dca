package bounds

import (
	"slices"
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

// everyPattern does without the search's merging of states: it follows each pattern from a fresh key to its end.
type everyPattern struct {
	search
	start int64
	most  []int64
}

func (e everyPattern) follow(state []int64, t, units int64) {
	if t >= e.start {
		if t-e.start >= int64(len(e.most)) {
			return
		}
	}
	for {
		if t >= e.start {
			e.most[t-e.start] = max(e.most[t-e.start], units)
		}
		e.follow(slices.Clone(state), t+1, units)
		var r algorithm.Result
		if state, r = e.program.Apply(slices.Clone(state), algorithm.Op{Cost: 1}, t); !r.Allowed {
			return
		}
		if t >= e.start {
			units++
		}
	}
}

func TestSearchFindsWhatEveryPatternFinds(t *testing.T) {
	for _, name := range algorithm.All() {
		options := ""
		if name == algorithm.SlidingBuckets {
			options = " cells=2"
		}
		if name == algorithm.Calendar {
			continue // its windows have too many ticks
		}
		s, err := newSearch(text(name, 2, 4, options))
		if err != nil {
			t.Fatal(err)
		}
		s.history = 1
		plain := make([]int64, s.width+1)
		for start := s.width; start < 2*s.width; start++ {
			everyPattern{s, start, plain}.follow(nil, 0, 0)
		}
		if found := s.most(1, false, s.width); !slices.Equal(found, plain) {
			t.Errorf("%s: the search finds %v, all patterns %v", name, found, plain)
		}
	}
}

func TestLongerHistoryAdmitsNoMore(t *testing.T) {
	for _, c := range claims() {
		s, err := newSearch(text(c.algorithm, 3, 6, c.options))
		if err != nil {
			t.Fatal(err)
		}
		usual := s.most(3, c.released, 2*s.width)
		s.history = 6
		if longer := s.most(3, c.released, 2*s.width); !slices.Equal(usual, longer) {
			t.Errorf("%s: after 3 windows %v, after 6 %v", c.algorithm, usual, longer)
		}
	}
}
