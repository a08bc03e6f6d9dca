package algorithm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A11: two calls one microsecond apart at 100,000/s, counted in microseconds in the year 2051: the second is denied, and
// the state is a whole number below 2⁵³. (That an engine writes it out in full is for its own tests.)
func TestPitfallA11MicrosecondsAfter2050(t *testing.T) {
	p, err := algorithm.Compile(algorithm.MustParseLimit("100000/1s burst=1"), time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2051, 1, 1, 0, 0, 0, 1000, time.UTC).UnixMicro()
	state, r := p.Apply(nil, algorithm.Op{Cost: 1}, now)
	if !r.Allowed || len(state) != 1 || state[0] != now+10 || state[0] >= 1<<53 {
		t.Fatalf("%+v, state %d", r, state)
	}
	if _, r = p.Apply(state, algorithm.Op{Cost: 1}, now+1); r.Allowed || r.RetryAfter != 9*time.Microsecond {
		t.Errorf("a microsecond later: %+v", r)
	}
}

// A12: half a second is a period like any other: a drained key is usable again at 500 ms, but for the limits below, whose wait
// says so. In whole seconds, which an engine may want for expiry and a header for Retry-After, that is 1, never 0.
func TestPitfallA12SubSecondWindows(t *testing.T) {
	longer := map[string]time.Duration{
		"sliding-window 1/500ms":  time.Second, // the previous window weighs less than its all only after it began
		"sliding-buckets 1/500ms": 508_333_334, // one cell of 500/60 ms more
		"leaky-queue 1/500ms":     time.Second, // the key admits two at once
	}
	for _, text := range eachAlgorithm("1/500ms") {
		if text == "1/day" {
			continue // has no shorter one
		}
		p := play(t, text)
		p.take(p.program.Limit().Capacity(), 0)
		want := 500 * time.Millisecond
		if d, ok := longer[text]; ok {
			want = d
		}
		r := p.take(p.program.Limit().Capacity(), 0)
		if r.RetryAfter != want {
			t.Errorf("%s: %+v; want a wait of %v", text, r, want)
		}
		if expiry := (r.ResetAfter + time.Second - 1) / time.Second; expiry != 1 {
			t.Errorf("%s: expires after %d s", text, expiry)
		}
		if r = p.take(p.program.Limit().Capacity(), int64(want)); !r.Allowed {
			t.Errorf("%s: denied after %v", text, want)
		}
	}
}

// A13: a window of 365 days remembers after 25 and after 50, where timers of 2³¹ ms would have wrapped. The moving average
// takes up to 208 days, and says so.
func TestPitfallA13LongWindows(t *testing.T) {
	start := int64(1_790_000_000) * sec
	for _, text := range eachAlgorithm("1/8760h") {
		if text == "exponential 1/8760h" {
			checkLongestAverage(t, text)
			text = "exponential 1/4992h"
		}
		p := play(t, text)
		p.take(p.program.Limit().Capacity(), start)
		for _, after := range []time.Duration{25 * day, 50 * day} {
			r := p.take(p.program.Limit().Capacity(), start+int64(after))
			if r.Allowed || p.program.Fresh(p.state, start+int64(after)) {
				t.Errorf("%s: forgotten after %v: %+v", text, after, r)
			}
		}
	}
}

func checkLongestAverage(t *testing.T, text string) {
	t.Helper()
	_, err := algorithm.ParseLimit(text)
	var refused *algorithm.LimitError
	if !errors.As(err, &refused) || refused.Field != "period" {
		t.Errorf("%s: %v", text, err)
	}
}

// A14: 10 per 18 s, one at a time: not at 1.1 s, but at 1.8 s, in nanoseconds and in microseconds. Expiry in
// whole seconds is then 2, never 1. (That an engine rounds so is for its own tests.)
func TestPitfallA14ExpiryRounding(t *testing.T) {
	for _, tick := range []time.Duration{time.Nanosecond, time.Microsecond} {
		p, err := algorithm.Compile(algorithm.MustParseLimit("10/18s burst=1"), tick)
		if err != nil {
			t.Fatal(err)
		}
		at := func(d time.Duration) int64 { return int64(d / tick) }
		state, r := p.Apply(nil, algorithm.Op{Cost: 1}, 0)
		if !r.Allowed || r.ResetAfter != 1800*time.Millisecond {
			t.Fatalf("%+v", r)
		}
		if state, r = p.Apply(state, algorithm.Op{Cost: 1}, at(1100*time.Millisecond)); r.Allowed {
			t.Errorf("in %v: allowed at 1.1 s", tick)
		}
		if _, r = p.Apply(state, algorithm.Op{Cost: 1}, at(1800*time.Millisecond)); !r.Allowed {
			t.Errorf("in %v: denied at 1.8 s", tick)
		}
	}
}

// A15: a cost that does not fit the estimate is denied as a whole, and not counted.
func TestPitfallA15SlidingEstimateWithCost(t *testing.T) {
	p := play(t, "sliding-window 10/1m")
	p.take(9, 0)
	if r := p.take(5, 1); r.Allowed || r.Remaining != 1 {
		t.Errorf("%+v", r)
	}
	if r := p.take(1, 1); !r.Allowed || r.Remaining != 0 {
		t.Errorf("the tenth: %+v", r)
	}
}
