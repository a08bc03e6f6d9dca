package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
)

func ExampleLimiter_Take() {
	limiter := mustNew("100/1h")
	d, err := limiter.Take(context.Background(), "user:42", 5)
	fmt.Println(d.Allowed, d.Limit, d.Remaining, err)
	// Output: true 100 95 <nil>
}

func ExampleLimiter_TakeAt() {
	limiter := mustNew("6/1m burst=2")
	ctx := context.Background()
	for _, after := range []time.Duration{0, 0, time.Second, 10 * time.Second} {
		d, _ := limiter.TakeAt(ctx, "user:42", 1, noon.Add(after))
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter, d.ResetAfter)
	}
	// Output:
	// true 1 0s 10s
	// true 0 0s 20s
	// false 0 9s 19s
	// true 0 0s 20s
}

// A queue's decision says how long the request must wait for its turn.
func ExampleLimiter_TakeAt_delay() {
	limiter := mustNew("leaky-queue 4/1s queue=2")
	for range 4 {
		d, _ := limiter.TakeAt(context.Background(), "printer", 1, noon)
		fmt.Println(d.Allowed, d.Delay, d.RetryAfter)
	}
	// Output:
	// true 0s 0s
	// true 250ms 0s
	// true 500ms 0s
	// false 0s 250ms
}

func ExampleLimiter_Peek() {
	limiter := mustNew("100/1h")
	d, err := limiter.Peek(context.Background(), "user:42")
	fmt.Println(d.Allowed, d.Remaining, d.ResetAfter, err)
	// Output: true 100 0s <nil>
}

func ExampleLimiter_PeekAt() {
	limiter := mustNew("6/1m")
	ctx := context.Background()
	_, _ = limiter.TakeAt(ctx, "user:42", 6, noon)
	d, _ := limiter.PeekAt(ctx, "user:42", noon.Add(20*time.Second))
	fmt.Println(d.Remaining, d.ResetAfter)
	// Output: 2 40s
}

func ExampleLimiter_TakeUpTo() {
	limiter := mustNew("10/1h")
	granted, d, err := limiter.TakeUpTo(context.Background(), "job:7", 25)
	fmt.Println(granted, d.Allowed, d.Remaining, err)
	// Output: 10 true 0 <nil>
}

func ExampleLimiter_TakeUpToAt() {
	limiter := mustNew("10/1m")
	for range 2 {
		granted, d, _ := limiter.TakeUpToAt(context.Background(), "job:7", 25, noon)
		fmt.Println(granted, d.Allowed, d.RetryAfter)
	}
	// Output:
	// 10 true 0s
	// 0 false 6s
}

func ExampleLimiter_Refund() {
	limiter := mustNew("10/1h")
	ctx := context.Background()
	_, _ = limiter.Take(ctx, "user:42", 5)
	d, err := limiter.Refund(ctx, "user:42", 5)
	fmt.Println(d.Remaining, err)
	// Output: 10 <nil>
}

func ExampleLimiter_RefundAt() {
	limiter := mustNew("10/1m")
	ctx := context.Background()
	_, _ = limiter.TakeAt(ctx, "user:42", 5, noon)
	for range 3 {
		d, _ := limiter.RefundAt(ctx, "user:42", 3, noon)
		fmt.Println(d.Remaining)
	}
	// Output:
	// 8
	// 10
	// 10
}

func ExampleLimiter_Reset() {
	limiter := mustNew("1/1h")
	ctx := context.Background()
	_, _ = limiter.Take(ctx, "user:42", 1)
	err := limiter.Reset(ctx, "user:42")
	d, _ := limiter.Take(ctx, "user:42", 1)
	fmt.Println(d.Allowed, err)
	// Output: true <nil>
}

func ExampleLimiter_TakeMany() {
	limiter := mustNew("2/1h")
	requests := []weir.Request{{Key: "a", Cost: 1}, {Key: "b", Cost: 2}, {Key: "b", Cost: 1}}
	decisions, err := limiter.TakeMany(context.Background(), requests, nil)
	for _, d := range decisions {
		fmt.Println(d.Allowed, d.Remaining)
	}
	fmt.Println(err)
	// Output:
	// true 1
	// true 0
	// false 0
	// <nil>
}

func ExampleLimiter_TakeManyAt() {
	limiter := mustNew("2/1m")
	var decisions []weir.Decision // may be kept from call to call
	requests := []weir.Request{{Key: "a", Cost: 2}, {Key: "a", Cost: 1}}
	for _, after := range []time.Duration{0, 30 * time.Second} {
		decisions, _ = limiter.TakeManyAt(context.Background(), requests, noon.Add(after), decisions[:0])
		fmt.Println(decisions[0].Allowed, decisions[1].Allowed)
	}
	// Output:
	// true false
	// false true
}

func ExampleLimiter_Allow() {
	limiter := mustNew("2/1m")
	for range 3 {
		fmt.Println(limiter.Allow(context.Background(), "user:42"))
	}
	// Output:
	// true
	// true
	// false
}
