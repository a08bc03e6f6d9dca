package weir_test

import (
	"context"
	"errors"
	"fmt"
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
