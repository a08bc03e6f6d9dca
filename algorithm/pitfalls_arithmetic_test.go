package algorithm_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A1: rates that divide no second, for 10⁹ virtual seconds of demand without a pause: the count is ⌊rate·t⌋ + burst at
// every look, to the unit. Jumps of up to 11 days make that quick.
func TestPitfallA1ExactCountOverAbillionSeconds(t *testing.T) {
	for _, rate := range []int64{3, 7, 600_000_000, 700_000_001} {
		l := algorithm.Limit{Count: rate, Period: time.Second, Burst: rate * 1_000_000}
		p := compile(t, l)
		state, r := p.Apply(nil, upTo(math.MaxInt64), 0)
		admitted := r.Granted
		for now := int64(0); now < 1_000_000_000*sec; {
			now = min(now+999_983*sec+333_333_331, 1_000_000_000*sec)
			state, r = p.Apply(state, upTo(math.MaxInt64), now)
			admitted += r.Granted
			want := floor(now, rate, sec) + l.Burst
			if admitted != want {
				t.Fatalf("%v: %d admitted after %v, want %d", l, admitted, time.Duration(now), want)
			}
		}
		checkWordCount(t, p, rate)
	}
}

// checkWordCount is the same for the limit's word, where it has one: as long as the state of the program.
func checkWordCount(t *testing.T, p *algorithm.Program, rate int64) {
	w, ok := p.Word()
	if !ok {
		return
	}
	start := 1_000_000_000 * sec // a word of thirds of a nanosecond begins in 1947
	units, _ := w.Units(start)
	word, v := w.Apply(math.MinInt64, upTo(math.MaxInt64), units)
	admitted := v.Granted
	for now := int64(0); now < 1_000_000_000*sec; {
		now = min(now+999_983*sec+333_333_331, 1_000_000_000*sec)
		units, _ = w.Units(start + now)
		word, v = w.Apply(word, upTo(math.MaxInt64), units)
		admitted += v.Granted
	}
	if want := floor(1_000_000_000*sec, rate, sec) + p.Limit().Burst; admitted != want {
		t.Errorf("%v: by its word %d admitted, want %d", p.Limit(), admitted, want)
	}
}

// A2: more than one unit per nanosecond is exact too.
func TestPitfallA2BeyondABillionPerSecond(t *testing.T) {
	p := play(t, "2000000000/1s")
	if r := p.apply(upTo(math.MaxInt64), 0); r.Granted != 2_000_000_000 {
		t.Fatalf("%+v", r)
	}
	total := int64(0)
	for now := int64(0); now < sec; now += 333_333 {
		total += p.apply(upTo(math.MaxInt64), now).Granted
	}
	if total += p.apply(upTo(math.MaxInt64), sec).Granted; total != 2_000_000_000 {
		t.Errorf("%d in a second", total)
	}
	if r := p.take(1, sec); r.Allowed || r.RetryAfter != 1 {
		t.Errorf("half a nanosecond is a wait of %v, want 1ns", r.RetryAfter)
	}
}

// A4: large capacities are full again after their period.
func TestPitfallA4BigCapacity(t *testing.T) {
	for _, rate := range []string{"65535/1s", "100000/1s", "2000000000/1s"} {
		p := play(t, rate)
		p.take(1, 0)
		if r := p.take(0, sec); r.Remaining != p.program.Limit().Count || r.ResetAfter != 0 {
			t.Errorf("%s: %+v", rate, r)
		}
	}
}

// A5: costs whose product with the interval would wrap are never admitted, and leave no trace; a capacity as large as an
// int64 works, or is refused because it could not be kept.
func TestPitfallA5Overflow(t *testing.T) {
	for _, text := range append(eachAlgorithm("1/1h"), eachAlgorithm("5/1h")...) {
		p := play(t, text)
		p.take(1, 0)
		before := slices.Clone(p.state)
		for _, cost := range []int64{3_000_000_000, 1 << 62, math.MaxInt64} {
			if r := p.take(cost, 1); r.Allowed || r.RetryAfter != algorithm.Never || !slices.Equal(p.state, before) {
				t.Errorf("%s: cost %d: %+v, state %d", text, cost, r, p.state)
			}
		}
	}
	p := play(t, "9223372036854775807/1s")
	p.take(math.MaxInt64-1, 0)
	if r := p.take(1, 0); !r.Allowed || r.Remaining != 0 || r.ResetAfter != time.Second {
		t.Errorf("the last of MaxInt64 units: %+v", r)
	}
	p.ones(0, 0)
	if _, err := algorithm.ParseLimit("1/1h burst=9223372036854775807"); err == nil {
		t.Error("a burst that takes 10¹⁵ years to refill is accepted")
	}
}

// A7: cost 0 on a fresh and on an existing key answers, and changes nothing.
func TestPitfallA7ZeroCost(t *testing.T) {
	for _, text := range eachAlgorithm("4/10s") {
		p := play(t, text)
		capacity := p.program.Limit().Capacity()
		r := p.take(0, 5)
		if !r.Allowed || r.Remaining != capacity || r.ResetAfter != 0 || len(p.state) != 0 {
			t.Errorf("%s: fresh: %+v, state %d", text, r, p.state)
		}
		p.take(1, 5)
		before := slices.Clone(p.state)
		first, again := p.take(0, 6), p.take(0, 6)
		if !first.Allowed || first != again || !slices.Equal(p.state, before) {
			t.Errorf("%s: %+v, then %+v, state from %d to %d", text, first, again, before, p.state)
		}
	}
}

// A8: a cost above capacity never passes, and says so; what remains is still told.
func TestPitfallA8CostAboveCapacity(t *testing.T) {
	for _, text := range eachAlgorithm("10/10s") {
		p := play(t, text)
		capacity := p.program.Limit().Capacity()
		if r := p.take(capacity+1, 0); r.Allowed || r.RetryAfter != algorithm.Never || r.Remaining != capacity || len(p.state) != 0 {
			t.Errorf("%s: fresh: %+v", text, r)
		}
		used := min(4, capacity)
		taken := p.take(used, 0)
		r := p.take(capacity+1, 0)
		if r.RetryAfter != algorithm.Never || r.Remaining != capacity-used || r.ResetAfter != taken.ResetAfter || r.ResetAfter == 0 {
			t.Errorf("%s: after %d: %+v", text, used, r)
		}
	}
}

// A9: the wait is sufficient also when rounded up to whole seconds, as a header has it. (That it is sufficient and tight to the
// nanosecond is a property of every algorithm: TestProgramAgreesWithModel.)
func TestPitfallA9RoundedWaitIsSufficient(t *testing.T) {
	for _, rate := range []string{"3/1s", "7/1s", "3/18s", "99999/1s", "700000001/1s"} {
		for _, text := range eachAlgorithm(rate) {
			if _, err := algorithm.ParseLimit(text); err != nil && rate == "700000001/1s" {
				continue // a log, of more entries than it keeps
			}
			p := play(t, text)
			capacity := p.program.Limit().Capacity()
			p.take(capacity, 1)
			r := p.take(capacity, 2)
			seconds := ceiling(big.NewRat(int64(r.RetryAfter), sec)).Int64()
			if r.Allowed || seconds < 1 {
				t.Fatalf("%s: %+v", text, r)
			}
			if r = p.take(capacity, 2+seconds*sec); !r.Allowed {
				t.Errorf("%s: still denied after %d s: %+v", text, seconds, r)
			}
		}
	}
}

// A10: what is left is 3.7 units; three are granted, and the fraction stays.
func TestPitfallA10PartialTake(t *testing.T) {
	p := play(t, "10/1s")
	p.take(10, 0)
	r := p.apply(upTo(10), 370_000_000)
	if !r.Allowed || r.Granted != 3 || r.Remaining != 0 {
		t.Errorf("%+v", r)
	}
	if r = p.apply(upTo(10), 370_000_000); r.Allowed || r.Granted != 0 || r.RetryAfter != 30*time.Millisecond {
		t.Errorf("then %+v; want the next unit after 30ms", r)
	}
}
