package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
)

// A worker that sends no faster than a limit waits before each job.
func ExampleLimiter_Wait() {
	limiter := mustNew("leaky-queue 100/1s")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for job := range 3 {
		if err := limiter.Wait(ctx, "mail", 1); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("send", job)
	}
	// Output:
	// send 0
	// send 1
	// send 2
}

// With burst=1 requests are spaced from the first on. Without it the first hundred go at once.
func ExampleLimiter_Wait_evenly() {
	limiter := mustNew("100/1s burst=1")
	start := time.Now()
	for range 3 {
		if err := limiter.Wait(context.Background(), "mail", 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(time.Since(start) >= 20*time.Millisecond)
	// Output: true
}

// A wait that can't end before the deadline ends at once.
func ExampleLimiter_Wait_deadline() {
	limiter := mustNew("1/1h")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(limiter.Wait(ctx, "user:42", 1))
	fmt.Println(errors.Is(limiter.Wait(ctx, "user:42", 1), context.DeadlineExceeded))
	// Output:
	// <nil>
	// true
}

// Units are reserved for work that may fail, and given back when it does.
func ExampleLimiter_Reserve() {
	limiter := mustNew("10/1h")
	ctx := context.Background()
	reservation, err := limiter.Reserve(ctx, "user:42", 4)
	if err != nil {
		panic(err)
	}
	fmt.Println(reservation.Allowed, reservation.Remaining)
	if err := reservation.Cancel(ctx); err != nil {
		panic(err)
	}
	d, err := limiter.Peek(ctx, "user:42")
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Remaining)
	// Output:
	// true 6
	// 10
}

func ExampleReservation_Cancel() {
	limiter := mustNew("1/1h")
	ctx := context.Background()
	reservation, err := limiter.Reserve(ctx, "user:42", 1)
	if err != nil {
		panic(err)
	}
	defer func() {
		d, err := limiter.Take(ctx, "user:42", 1)
		fmt.Println(d.Allowed, err)
	}()
	defer reservation.Cancel(ctx) // the work did not happen
	// Output:
	// true <nil>
}

func ExampleCapacityError_Error() {
	limiter := mustNew("10/1h")
	var capacity *weir.CapacityError
	err := limiter.Wait(context.Background(), "user:42", 11)
	fmt.Println(errors.As(err, &capacity), err)
	// Output:
	// true weir: cost is 11, which never passes; accepted: up to the limit's capacity, 10
}
