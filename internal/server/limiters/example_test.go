package limiters_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func Example() {
	ctx, set := context.Background(), limiters.New(memory.New(memory.Options{}))

	limiter, err := set.Bind([]byte("login"), []byte("2/1h"), false)
	if err != nil {
		panic(err)
	}
	again, err := set.Bind([]byte("login"), []byte("2/60m"), false) // another spelling of the same limit
	fmt.Println(limiter == again, err)

	throttle, err := set.Throttle(16, 30, time.Minute) // the state is under the key alone
	if err != nil {
		panic(err)
	}
	v, err := throttle.Do(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, err)
	// Output:
	// true <nil>
	// 1 15 <nil>
}

func ExampleSet_Bind() {
	ctx, set := context.Background(), limiters.New(memory.New(memory.Options{}))
	b, err := set.Bind([]byte("login"), []byte("2/1h"), false)
	if err != nil {
		panic(err)
	}
	v, at, err := b.DoStamped(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, time.Since(time.Unix(0, at)) < time.Minute, err)

	_, joins := set.Store().(store.Joiner)
	fmt.Println(set.Tick(), joins)
	// Output:
	// 1 1 true <nil>
	// 1ns true
}

// A set with a bound of an hour on periods.
func ExampleNewRestricted() {
	set := limiters.NewRestricted(memory.New(memory.Options{}), limiters.Rules{MaxPeriod: time.Hour})
	_, err := set.Bind([]byte("login"), []byte("5/1m"), false)
	fmt.Println(err)
	_, err = set.Bind([]byte("login"), []byte("5/24h"), false)
	fmt.Println(err != nil)
	// Output:
	// <nil>
	// true
}
