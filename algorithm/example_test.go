package algorithm_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// second returns a time of a key's own clock, in ticks of a nanosecond.
func second(n float64) int64 { return int64(n * float64(time.Second)) }

func ExampleParseLimit() {
	limit, err := algorithm.ParseLimit("gcra 10/1s burst=20")
	fmt.Println(limit.Algorithm, limit.Count, limit.Period, limit.Burst, err)
	_, err = algorithm.ParseLimit("gcra 0/1s")
	fmt.Println(err)
	// Output:
	// gcra 10 1s 20 <nil>
	// weir: limit has count 0; accepted: 1 to 9223372036854775807
}

func ExampleMustParseLimit() {
	login := algorithm.MustParseLimit("cooldown 3/1m")
	fmt.Println(login.Count, login.Period)
	// Output: 3 1m0s
}

func ExampleLimit() {
	limit := algorithm.Limit{Algorithm: algorithm.LeakyQueue, Count: 4, Period: time.Second, Queue: 10}
	fmt.Println(limit, limit.Validate())
	// Output: leaky-queue 4/1s queue=10 <nil>
}

func ExampleLimit_Canonical() {
	limit := algorithm.Limit{Count: 100, Period: time.Minute}.Canonical()
	fmt.Println(limit.Algorithm, limit.Burst)
	// Output: token-bucket 100
}

func ExampleLimit_Capacity() {
	for _, text := range []string{"100/1m", "100/1m burst=10", "leaky-queue 4/1s queue=10", "min-interval 10/1s"} {
		fmt.Println(algorithm.MustParseLimit(text).Capacity())
	}
	// Output:
	// 100
	// 10
	// 11
	// 1
}

func ExampleLimit_Validate() {
	limit := algorithm.Limit{Algorithm: algorithm.FixedWindow, Count: 100, Period: time.Minute, Burst: 200}
	fmt.Println(limit.Validate())
	// Output: weir: limit has burst 200; accepted: none for fixed-window
}

func ExampleLimit_String() {
	limit := algorithm.Limit{Algorithm: algorithm.SlidingBuckets, Count: 100, Period: time.Minute, Cells: 12}
	fmt.Println(limit.String())
	// Output: sliding-buckets 100/1m cells=12
}

func ExampleLimit_MarshalText() {
	text, err := algorithm.Limit{Count: 100, Period: time.Minute}.MarshalText()
	fmt.Println(string(text), err)
	// Output: 100/1m <nil>
}

func ExampleLimit_UnmarshalText() {
	var limit algorithm.Limit
	err := limit.UnmarshalText([]byte("sliding-log 3/m"))
	fmt.Println(limit, err)
	// Output: sliding-log 3/1m <nil>
}

func ExampleLimitError() {
	_, err := algorithm.ParseLimit("sliding-buckets 100/1m cells=5000")
	if refused, ok := errors.AsType[*algorithm.LimitError](err); ok {
		fmt.Printf("field %s, value %s, accepted %s\n", refused.Field, refused.Value, refused.Accept)
	}
	// Output: field cells, value 5000, accepted 1 to 3600 (0 in Go: 60)
}

func ExampleLimitError_Error() {
	err := &algorithm.LimitError{Field: "cells", Value: "5000", Accept: "1 to 3600"}
	fmt.Println(err.Error())
	// Output: weir: limit has cells 5000; accepted: 1 to 3600
}

func ExampleAll() {
	for _, name := range algorithm.All() {
		fmt.Print(name, " ")
	}
	fmt.Println()
	// Output: token-bucket gcra leaky-bucket leaky-queue cooldown min-interval refill-bucket fixed-window quota-reset sliding-log sliding-window sliding-buckets hybrid exponential calendar concurrent
}

func ExampleCompile() {
	limit := algorithm.MustParseLimit("fixed-window 10/1500ns")
	_, err := algorithm.Compile(limit, time.Nanosecond)
	fmt.Println(err)
	_, err = algorithm.Compile(limit, time.Microsecond)
	fmt.Println(err)
	// Output:
	// <nil>
	// weir: limit has period 1.5µs; accepted: a whole number of 1µs in this store
}

func ExampleProgram_Apply() {
	program, err := algorithm.Compile(algorithm.MustParseLimit("6/1m burst=3"), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	var state []int64 // a key never seen
	for _, op := range []algorithm.Op{
		{Kind: algorithm.Take, Cost: 2},
		{Kind: algorithm.Take, Cost: 2}, // denied, and costs nothing
		{Kind: algorithm.TakeUpTo, Cost: 2},
		{Kind: algorithm.Refund, Cost: 3},
		{Kind: algorithm.Reset},
	} {
		var r algorithm.Result
		state, r = program.Apply(state, op, second(0))
		fmt.Println(r.Allowed, r.Granted, r.Remaining, r.RetryAfter, r.ResetAfter)
	}
	// Output:
	// true 2 1 0s 20s
	// false 0 1 10s 20s
	// true 1 0 0s 30s
	// true 0 3 0s 0s
	// true 0 3 0s 0s
}

func ExampleProgram_Limit() {
	program, err := algorithm.Compile(algorithm.Limit{Count: 5, Period: time.Second}, time.Nanosecond)
	if err != nil {
		panic(err)
	}
	fmt.Println(program.Limit().Algorithm, program.Limit().Burst)
	// Output: token-bucket 5
}

func ExampleProgram_Fresh() {
	program, err := algorithm.Compile(algorithm.MustParseLimit("quota-reset 3/1m"), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	state, _ := program.Apply(nil, algorithm.Op{Cost: 1}, second(0))
	fmt.Println(program.Fresh(state, second(59)), program.Fresh(state, second(60)))
	// Output: false true
}

func ExampleProgram_Heal() {
	program, err := algorithm.Compile(algorithm.MustParseLimit("3/1m"), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	// One unit taken at 1 h by a clock that then steps back to 0: a wait of an hour for a limit of a minute.
	state, _ := program.Apply(nil, algorithm.Op{Cost: 1}, second(3600))
	fmt.Println(program.Heal(state, second(0)))
	_, r := program.Apply(state, algorithm.Op{Cost: 1}, second(0))
	fmt.Println(r.Allowed, r.RetryAfter, r.ResetAfter)
	// Output:
	// true
	// false 20s 1m0s
}

func ExampleAlgorithm_Linear() {
	fmt.Println(algorithm.TokenBucket.Linear(), algorithm.FixedWindow.Linear())
	// Output: true false
}

// Of ten tokens that were missing after four were taken, eight have come back a second later.
func ExampleLimit_Outstanding() {
	limit := algorithm.MustParseLimit("refill-bucket 8/1s burst=20")
	taken := algorithm.Decision{Allowed: true, Limit: 20, Remaining: 10, ResetAfter: 2 * time.Second}
	fmt.Println(limit.Outstanding(4, taken, 500*time.Millisecond), limit.Outstanding(4, taken, 1500*time.Millisecond))
	// Output: 4 2
}

func ExampleCompileShared() {
	// A unit of 10/1s is a tenth of a second of debt, under any other limit too.
	tens, err := algorithm.CompileShared(algorithm.MustParseLimit("gcra 10/1s"), time.Microsecond)
	if err != nil {
		panic(err)
	}
	twos, err := algorithm.CompileShared(algorithm.MustParseLimit("gcra 20/1s"), time.Microsecond)
	if err != nil {
		panic(err)
	}
	state, _ := tens.Apply(nil, algorithm.Op{Cost: 1}, 0)
	_, result := twos.Apply(state, algorithm.Op{}, 0)
	fmt.Println(result.Remaining, result.ResetAfter)
	// Output: 18 100ms
}

func ExampleProgram_Tick() {
	program, err := algorithm.Compile(algorithm.MustParseLimit("10/1s"), time.Microsecond)
	if err != nil {
		panic(err)
	}
	fmt.Println(program.Tick())
	// Output: 1µs
}

func ExampleLimit_Note() {
	fmt.Println(algorithm.MustParseLimit("500/1d").Note())
	// Output: 500/24h is not tied to the calendar; 500/day begins anew each day at 00:00 UTC
}

// Four processes that each enforce a quarter admit together at most the bound of the limit.
func ExampleLimit_Share() {
	for _, text := range []string{"100/1m", "3/1m burst=20", "concurrent 3 lease=30s"} {
		fmt.Println(algorithm.MustParseLimit(text).Share(1, 4))
	}
	// Output:
	// 25/1m <nil>
	// 1/1m20s burst=5 <nil>
	// 0/0s weir: limit has count 3; accepted: 4 or more, for a share of 25%
}
