package algorithm_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func mustCompile(text string) *algorithm.Program {
	program, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	return program
}

func ExampleProgram_Word() {
	for _, text := range []string{"100/1m", "7/1s", "fixed-window 100/1m"} {
		_, ok := mustCompile(text).Word() // 7/1s takes sevenths of a nanosecond, and so two words
		fmt.Println(text, ok)
	}
	// Output:
	// 100/1m true
	// 7/1s false
	// fixed-window 100/1m false
}

func ExampleProgram_SharedWord() {
	// Two limits on the same key, one after the other: what was used under one is used under the other.
	slow, _ := mustCompile("1/1m burst=5").SharedWord(0)
	fast, _ := mustCompile("60/1m").SharedWord(0)
	now, _ := slow.Units(second(0))
	state, _ := slow.Take(0, 1, now)
	state, allowed := fast.Take(state, 1, now)
	fmt.Println(allowed, time.Duration(fast.Time(state)))
	// Output: false 1m0s
}

func ExampleWord_Take() {
	word, _ := mustCompile("2/1m").Word()
	now, _ := word.Units(second(0))
	state := int64(0) // not after now: a key never seen
	for range 3 {
		var allowed bool
		state, allowed = word.Take(state, 1, now)
		fmt.Println(allowed, time.Duration(state))
	}
	// Output:
	// true 30s
	// true 1m0s
	// false 1m0s
}

func ExampleWord_Verdict() {
	word, _ := mustCompile("2/1m").Word()
	next, allowed := word.Take(0, 2, second(0))
	v := word.Verdict(0, next, 2, second(0), allowed)
	fmt.Println(v.Granted, v.Remaining, v.Wait, v.Reset)
	// Output: 2 0 0s 1m0s
}

func ExampleWord_Apply() {
	word, _ := mustCompile("2/1m").Word()
	state, _ := word.Apply(0, algorithm.Op{Kind: algorithm.Take, Cost: 2}, second(0))
	state, v := word.Apply(state, algorithm.Op{Kind: algorithm.Refund, Cost: 1}, second(0))
	fmt.Println(time.Duration(state), v.Remaining)
	// Output: 30s 1
}

func ExampleWord_State() {
	program := mustCompile("2/1m")
	word, _ := program.Word()
	next, _ := word.Take(0, 1, second(0))
	_, r := program.Apply(word.State(next), algorithm.Op{Cost: 2}, second(0))
	fmt.Println(r.Allowed, r.Remaining, r.RetryAfter)
	// Output: false 1 30s
}

func ExampleWord_Units() {
	word, _ := mustCompile("400000000/1s").Word() // an interval of two and a half nanoseconds
	at := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano()
	earlier, _ := word.Units(at - 1)
	units, ok := word.Units(at)
	fmt.Println(units-earlier, ok)
	// Output: 2 true
}

func ExampleWord_Time() {
	word, _ := mustCompile("400000000/1s").Word()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	units, _ := word.Units(at.UnixNano())
	fmt.Println(word.Time(units+1) - at.UnixNano()) // rounded up
	// Output: 1
}

func ExampleWord_Unit() {
	minute, _ := mustCompile("100/1m").Word()
	fraction, _ := mustCompile("400000000/1s").Word()
	fmt.Println(minute.Unit(), fraction.Unit())
	// Output: 1 2
}

func ExampleResult_Verdict() {
	_, r := mustCompile("2/1m").Apply(nil, algorithm.Op{Cost: 3}, second(0))
	v := r.Verdict()
	fmt.Println(v.Granted, v.Remaining, v.Wait == algorithm.Never, v.Reset)
	// Output: -1 2 true 0s
}

func ExampleVerdict_Decision() {
	v := algorithm.Verdict{Granted: 1, Remaining: 1, Reset: 30 * time.Second}
	d := v.Decision(2)
	fmt.Println(d.Allowed, d.Remaining, d.Limit, d.ResetAfter)
	// Output: true 1 2 30s
}

func ExampleVerdict_Read() {
	v := algorithm.Verdict{Granted: -1, Wait: 30 * time.Second, Reset: time.Minute}
	var d algorithm.Decision
	v.Read(&d, 2)
	fmt.Println(d.Allowed, d.Remaining, d.Limit, d.RetryAfter, d.ResetAfter)
	// Output: false 0 2 30s 1m0s
}
