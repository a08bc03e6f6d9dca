package weir_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// noon is when the examples start. A program would let the limiter read the clock, with Take in place of TakeAt.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func mustNew(text string, opts ...weir.Option) *weir.Limiter {
	limiter, err := weir.New(weir.MustParseLimit(text), opts...)
	if err != nil {
		panic(err)
	}
	return limiter
}

func Example() {
	limit, err := weir.ParseLimit("3/1h")
	if err != nil {
		panic(err)
	}
	limiter, err := weir.New(limit)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 4 {
		d, err := limiter.Take(ctx, "user:42", 1)
		if err != nil {
			panic(err) // no decision could be made; let the request pass or not, as suits it
		}
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
}

func ExampleParseLimit() {
	limit, err := weir.ParseLimit("sliding-buckets 100/1m cells=12")
	fmt.Println(limit.Algorithm, limit.Count, limit.Period, limit.Cells, err)
	_, err = weir.ParseLimit("100 per minute")
	fmt.Println(err)
	// Output:
	// sliding-buckets 100 1m0s 12 <nil>
	// weir: limit has rate "per"; accepted: count/period, such as 100/1m; did you mean 100/minute?
}

func ExampleMustParseLimit() {
	fmt.Println(weir.MustParseLimit("10/s").Period)
	// Output: 1s
}

func ExampleLimit() {
	limit := weir.Limit{Algorithm: weir.GCRA, Count: 10, Period: time.Second, Burst: 20}
	fmt.Println(limit.String())
	// Output: gcra 10/1s burst=20
}

func ExampleLimitError() {
	_, err := weir.New(weir.Limit{Count: 100})
	if refused, ok := errors.AsType[*weir.LimitError](err); ok {
		fmt.Println(refused.Field, refused.Value, refused.Accept)
	}
	// Output: period 0s 1ns or longer
}

func ExampleNew() {
	limiter, err := weir.New(weir.Limit{Count: 100, Period: time.Minute})
	fmt.Println(limiter.Limit(), err)
	// Output: 100/1m <nil>
}

func ExampleWithStore() {
	// One store for all limits of a program bounds their memory together.
	s := memory.New(memory.Options{MaxKeys: 100_000})
	logins := mustNew("cooldown 3/1m", weir.WithStore(s))
	pages := mustNew("100/1m", weir.WithStore(s))
	ctx := context.Background()
	for _, limiter := range []*weir.Limiter{logins, pages} {
		d, _ := limiter.TakeAt(ctx, "user:42", 1, noon)
		fmt.Println(d.Remaining)
	}
	// Output:
	// 2
	// 99
}

func ExampleWithClock() {
	now := noon
	limiter := mustNew("1/1m", weir.WithClock(func() time.Time { return now }))
	ctx := context.Background()
	for range 3 {
		d, _ := limiter.Take(ctx, "user:42", 1)
		fmt.Println(d.Allowed, d.RetryAfter)
		now = now.Add(30 * time.Second)
	}
	// Output:
	// true 0s
	// false 30s
	// true 0s
}

func ExampleWithName() {
	s := memory.New(memory.Options{})
	read := mustNew("10/1m", weir.WithStore(s), weir.WithName("read"))
	write := mustNew("10/1m", weir.WithStore(s), weir.WithName("write"))
	ctx := context.Background()
	_, _ = read.TakeAt(ctx, "user:42", 10, noon)
	d, _ := write.PeekAt(ctx, "user:42", noon)
	fmt.Println(d.Remaining)
	// Output: 10
}

func ExampleLimiter_Limit() {
	fmt.Println(mustNew("leaky-queue 4/s queue=10").Limit())
	// Output: leaky-queue 4/1s queue=10
}

func ExampleCostError() {
	_, err := mustNew("10/1m").Take(context.Background(), "user:42", -1)
	var cost *weir.CostError
	fmt.Println(errors.As(err, &cost), err)
	// Output: true weir: cost is -1; accepted: 0 (a peek) or more; Refund gives units back
}

func ExampleCostError_Error() {
	fmt.Println((&weir.CostError{Cost: -5}).Error())
	// Output: weir: cost is -5; accepted: 0 (a peek) or more; Refund gives units back
}

func Example_never() {
	d, _ := mustNew("10/1m").TakeAt(context.Background(), "user:42", 11, noon)
	fmt.Println(d.Allowed, d.RetryAfter == weir.Never, d.Remaining)
	// Output: false true 10
}

func Example_errTime() {
	_, err := mustNew("10/1m").TakeAt(context.Background(), "user:42", 1, time.Time{})
	fmt.Println(errors.Is(err, weir.ErrTime), err)
	// Output: true weir: time is out of reach: every limit reaches from 1947 to 2074, most from 1866
}

func ExampleLimiter_Name() {
	logins, err := weir.New(weir.MustParseLimit("5/1m"), weir.WithName("logins"))
	if err != nil {
		panic(err)
	}
	fmt.Println(logins.Name())
	// Output: logins
}

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

// A customer moves to a larger plan: what was used stays used, and the rest is there at once.
func ExampleLimiter_SetLimit() {
	limiter, err := weir.New(weir.MustParseLimit("10/1h"), weir.WithName("plan"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err = limiter.Take(ctx, "user:42", 10); err != nil {
		panic(err)
	}
	if err = limiter.SetLimit(weir.MustParseLimit("50/1h")); err != nil {
		panic(err)
	}
	d, err := limiter.Take(ctx, "user:42", 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(limiter.Limit(), d.Allowed, d.Remaining)
	// Output:
	// 50/1h true 39
}

// Who waits for a limit that is raised waits no longer than the new one asks for.
func ExampleLimiter_SetLimit_waiting() {
	limiter, err := weir.New(weir.MustParseLimit("1/24h"), weir.WithName("plan"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err = limiter.Take(ctx, "user:42", 1); err != nil {
		panic(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() { fmt.Println(limiter.Wait(ctx, "user:42", 1)) })
	if err = limiter.SetLimit(weir.MustParseLimit("100/24h")); err != nil {
		panic(err)
	}
	waiting.Wait()
	// Output:
	// <nil>
}

// What makes no sense changes nothing, and a limiter without a name has one limit for ever.
func ExampleLimiter_SetLimit_refused() {
	named, err := weir.New(weir.MustParseLimit("10/1h"), weir.WithName("plan"))
	if err != nil {
		panic(err)
	}
	var wrong *weir.LimitError
	fmt.Println(errors.As(named.SetLimit(weir.Limit{}), &wrong), wrong.Field, named.Limit())
	unnamed := mustNew("10/1h")
	fmt.Println(errors.Is(unnamed.SetLimit(named.Limit()), weir.ErrUnnamed))
	// Output:
	// true count 10/1h
	// true
}

// The limit in force is bound to the limiter's store.
func ExampleLimiter_Bound() {
	limiter, err := weir.New(weir.MustParseLimit("100/60s"), weir.WithName("api"))
	if err != nil {
		panic(err)
	}
	b := limiter.Bound()
	fmt.Println(b.Name, b.Text(), b.Capacity)
	// Output: api 100/1m 100
}
