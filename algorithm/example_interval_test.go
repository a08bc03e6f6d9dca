package algorithm_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func ExampleProgram_Interval() {
	limit := algorithm.MustParseLimit("7/1s")
	exact, _ := algorithm.Compile(limit, time.Microsecond)
	fmt.Println(exact.Interval())
	shared, _ := algorithm.CompileShared(limit, time.Microsecond)
	fmt.Println(shared.Interval())
	window, _ := algorithm.Compile(algorithm.MustParseLimit("fixed-window 7/1s"), time.Microsecond)
	fmt.Println(window.Interval())
	// Output:
	// {1000000 7} true
	// {2285714286 16000} true
	// {0 0} false
}

func ExampleInterval_Times() {
	program, _ := algorithm.Compile(algorithm.MustParseLimit("7/1s"), time.Microsecond)
	interval, _ := program.Interval()
	fmt.Println(interval.Times(7), interval.Times(2))
	// Output: {1000000 0} {285714 2}
}

func ExampleInterval_Minus() {
	program, _ := algorithm.Compile(algorithm.MustParseLimit("7/1s"), time.Microsecond)
	interval, _ := program.Interval()
	fmt.Println(interval.Minus(interval.Times(7), interval.Times(2)))
	// Output: {714285 5}
}

func ExampleProgram_Check() {
	program, err := algorithm.Compile(algorithm.MustParseLimit("fixed-window 10/1h"), time.Microsecond)
	if err != nil {
		panic(err)
	}
	fmt.Println(program.Check([]int64{498713, 3}))
	fmt.Println(program.Check([]int64{498713}))
	// Output:
	// <nil>
	// weir: the state [498713] is none that fixed-window 10/1h makes; it stays until it is reset
}

func ExampleTogether() {
	hour := algorithm.Decision{Allowed: true, Limit: 100, Remaining: 98, ResetAfter: time.Hour}
	second := algorithm.Decision{Limit: 2, RetryAfter: time.Second, ResetAfter: time.Second}
	d := algorithm.Together([]algorithm.Decision{hour, second})
	fmt.Println(d.Allowed, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter)
	// Output: false 2 0 1s 1h0m0s
}
