package algorithm_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

var linearFamily = []algorithm.Algorithm{
	algorithm.TokenBucket, algorithm.GCRA, algorithm.LeakyBucket,
	algorithm.Cooldown, algorithm.MinInterval, algorithm.LeakyQueue,
}

// none is the word of a key never seen.
const none = math.MinInt64

func TestWordAnswersAsProgram(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		tr := newTrace(t, l, false)
		checkWord(t, l, tr, func() algorithm.Kind { return anyKind(t) })
	}, linearFamily...)
}

// What a reset leaves of a word is a time, not nothing; so the two are equal without resets once time steps back.
func TestWordAnswersAsProgramWhenTimeStepsBack(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		kinds := []algorithm.Kind{algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Cancel}
		checkWord(t, l, newTrace(t, l, true), func() algorithm.Kind { return rapid.SampledFrom(kinds).Draw(t, "kind") })
	}, linearFamily...)
}

// reach is how far time may step back, in nanoseconds, for a word to still know its debt: 36 years.
const reach = 1 << 60

// A step back that is longer than a word can count is still a denial, not a difference that wrapped.
func TestWordDeniesAfterTheLongestStepBack(t *testing.T) {
	w, ok := compile(t, algorithm.MustParseLimit("400000000/1s")).Word()
	late, inReach := w.Units(algorithm.MaxTime)
	early, alsoInReach := w.Units(-1_800_000_000 * sec)
	if !ok || !inReach || !alsoInReach || late-early > 0 {
		t.Fatalf("words reach from %d to %d", early, late)
	}
	word, _ := w.Apply(none, algorithm.Op{Cost: 1}, late)
	next, v := w.Apply(word, algorithm.Op{Cost: 1}, early)
	if v.Granted >= 0 || v.Remaining != 0 || v.Wait <= 0 || v.Reset <= 0 || next != word {
		t.Errorf("%+v", v)
	}
}

// checkWord gives a program and its word one trace.
func checkWord(t *rapid.T, l algorithm.Limit, tr *trace, kind func() algorithm.Kind) {
	p := compile(t, l)
	w, ok := p.Word()
	if !ok {
		return
	}
	word, state := int64(none), []int64(nil)
	newest := tr.now
	for range steps {
		now, cost := tr.next(t)
		units, ok := w.Units(now)
		newest = max(newest, now)
		if !ok || newest-now > reach {
			continue
		}
		if again := w.Time(units); again != now {
			t.Fatalf("%d ns is %d units, which is %d ns", now, units, again)
		}
		op, before := algorithm.Op{Kind: kind(), Cost: cost}, word
		if word != none {
			checkState(t, p, w, word, op, now)
		}
		var got algorithm.Verdict
		var want algorithm.Result
		word, got = w.Apply(word, op, units)
		state, want = p.Apply(state, op, now)
		if got != want.Verdict() || got.Decision(l.Capacity()) != want.Decision {
			t.Fatalf("%v: %+v at %d: word says %+v, program %+v", l, op, now, got, want)
		}
		if op.Kind < algorithm.Refund && want.Granted == 0 && word != before {
			t.Fatalf("%v: %+v at %d: word changed from %d to %d", l, op, now, before, word)
		}
		tr.last = want.Decision
	}
}

// checkState asks the program about the state that the word stands for.
func checkState(t *rapid.T, p *algorithm.Program, w algorithm.Word, word int64, op algorithm.Op, now int64) {
	units, _ := w.Units(now)
	_, want := w.Apply(word, op, units)
	if _, got := p.Apply(w.State(word), op, now); got.Verdict() != want {
		t.Fatalf("%+v at %d on state %d: %+v, on word %d: %+v", op, now, w.State(word), got, word, want)
	}
}

// TestWordExistsForWholeIntervals: the limits that most people write need no more than one word.
func TestWordExistsForWholeIntervals(t *testing.T) {
	for text, want := range map[string]bool{
		"100/1m": true, "10/1s burst=20": true, "3/1s": true, "600000000/1s": true, "leaky-queue 4/1s": true,
		"7/1s": false, "700000001/1s": false, "fixed-window 10/1s": false, "hybrid 10/10s": false,
	} {
		if _, ok := compile(t, algorithm.MustParseLimit(text)).Word(); ok != want {
			t.Errorf("%s: one word %v, want %v", text, ok, want)
		}
	}
}

func TestSharedWordNeverAdmitsMoreThanTheProgram(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, false)
		w, ok := p.SharedWord(tr.now)
		if !ok {
			return
		}
		word, state := int64(none), []int64(nil)
		shared, exact := new(big.Int), new(big.Int) // units admitted so far
		for range steps {
			now, cost := tr.next(t)
			units, ok := w.Units(now)
			if !ok {
				return
			}
			var v algorithm.Verdict
			var r algorithm.Result
			word, v = w.Apply(word, upTo(cost), units)
			state, r = p.Apply(state, upTo(cost), now)
			tr.last = v.Decision(l.Capacity())
			shared.Add(shared, big.NewInt(max(0, v.Granted)))
			exact.Add(exact, big.NewInt(r.Granted))
			if shared.Cmp(exact) > 0 {
				t.Fatalf("%v: the word admitted %v, the program %v", l, shared, exact)
			}
		}
	}, linearFamily...)
}

// TestSharedWordRateIsWithinTenPartsPerMillion compares the times in which a drained key is full again.
func TestSharedWordRateIsWithinTenPartsPerMillion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := algorithm.Limit{Algorithm: algorithm.GCRA, Count: rapid.Int64Range(1, 100_000).Draw(t, "count")}
		l.Period = time.Second * time.Duration(rapid.IntRange(1, 600).Draw(t, "period in seconds"))
		l.Burst = rapid.Int64Range(1, 100_000).Draw(t, "burst")
		p := compile(t, l)
		w, ok := p.SharedWord(0)
		if !ok {
			t.Fatalf("%v has no shared word", l)
		}
		_, got := w.Apply(none, algorithm.Op{Cost: l.Burst}, 0)
		exact := mul(rat(l.Burst), big.NewRat(int64(l.Period), l.Count))
		most := mul(exact, big.NewRat(1_000_010, 1_000_000))
		if less(rat(int64(got.Reset)), exact) || ceiling(most).Cmp(big.NewInt(int64(got.Reset))) < 0 {
			t.Fatalf("%v: full again after %v; exact %v", l, got.Reset, exact.FloatString(3))
		}
	})
}
