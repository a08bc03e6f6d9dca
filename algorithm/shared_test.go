package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// TestSharedProgramAnswersAsSharedWord gives one key requests under two limits, as a program whose state both share and as words.
func TestSharedProgramAnswersAsSharedWord(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		other := l
		other.Count = max(1, l.Count/2)
		var programs [2]*algorithm.Program
		var words [2]algorithm.Word
		const origin = 1_700_000_000 * sec
		for i, limit := range []algorithm.Limit{l, other} {
			p, err := algorithm.CompileShared(limit, time.Nanosecond)
			w, ok := compile(t, l).SharedWord(origin)
			if i == 1 {
				if !compiles(limit) {
					return
				}
				w, ok = compile(t, limit).SharedWord(origin)
			}
			if (err == nil) != ok {
				t.Fatalf("%v: program: %v, word: %v", limit, err, ok)
			}
			if !ok {
				return
			}
			programs[i], words[i] = p, w
		}
		word, state, now := int64(none), []int64(nil), origin
		for range steps {
			i := rapid.IntRange(0, 1).Draw(t, "limit")
			tr := trace{limit: []algorithm.Limit{l, other}[i], now: now}
			now += min(tr.gap(t), int64(time.Hour))
			op := algorithm.Op{Kind: anyKind(t), Cost: tr.cost(t)}
			units, ok := words[i].Units(now)
			if !ok {
				return
			}
			var got algorithm.Verdict
			var want algorithm.Result
			word, got = words[i].Apply(word, op, units)
			state, want = programs[i].Apply(state, op, now)
			if got != want.Verdict() {
				t.Fatalf("%v: %+v at %d: word %+v, program %+v", tr.limit, op, now, got, want)
			}
			if programs[i].Heal(state, now) {
				t.Fatalf("%v healed a state that the other limit made", tr.limit)
			}
		}
	}, linearFamily...)
}

// The state in microseconds means what it means in nanoseconds.
func TestSharedProgramsOfMicrosecondsAgree(t *testing.T) {
	limit := algorithm.MustParseLimit("gcra 7/1s burst=20")
	micro, err := algorithm.CompileShared(limit, time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	nano, err := algorithm.CompileShared(limit, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	var a, b []int64
	for i := range int64(1000) {
		now := 1_700_000_000_000_000 + i*i*37
		op := algorithm.Op{Cost: i % 3}
		var got, want algorithm.Result
		a, got = micro.Apply(a, op, now)
		b, want = nano.Apply(b, op, now*1000)
		want.RetryAfter, want.ResetAfter = roundUp(want.RetryAfter), roundUp(want.ResetAfter)
		if got != want {
			t.Fatalf("step %d: in microseconds %+v, in nanoseconds %+v", i, got, want)
		}
	}
}
