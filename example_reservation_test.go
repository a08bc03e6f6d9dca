package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
)

// Tokens of a language model: how many an answer takes is known when it is there.
func ExampleLimiter_Hold() {
	ctx := context.Background()
	tokens, err := weir.New(weir.MustParseLimit("10000/day"), weir.WithName("tokens"))
	if err != nil {
		panic(err)
	}
	hold, err := tokens.Hold(ctx, "user:42", 4000, time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println(hold.Allowed, hold.Remaining)
	defer hold.Cancel(ctx) // does nothing after a Commit
	d, err := hold.Commit(ctx, 1312)
	fmt.Println(d.Remaining, err)
	// Output:
	// true 6000
	// 8688 <nil>
}

func ExampleHold_Commit() {
	ctx := context.Background()
	tokens, err := weir.New(weir.MustParseLimit("fixed-window 100/1h"), weir.WithName("tokens"))
	if err != nil {
		panic(err)
	}
	hold, err := tokens.Hold(ctx, "user:42", 30, time.Minute)
	if err != nil {
		panic(err)
	}
	d, err := hold.Commit(ctx, 150) // 50 are owed, and come off the next hour
	fmt.Println(d.Allowed, d.Remaining, err)
	d, err = hold.Commit(ctx, 150) // once is enough
	fmt.Println(d.Allowed, d.RetryAfter == weir.Never, err)
	// Output:
	// true 0 <nil>
	// false true <nil>
}

// Work of unknown length renews its hold.
func ExampleHold_Renew() {
	ctx, now := context.Background(), time.Unix(1_790_000_000, 0)
	tokens, err := weir.New(weir.MustParseLimit("fixed-window 100/1h"), weir.WithName("tokens"), weir.WithClock(func() time.Time { return now }))
	if err != nil {
		panic(err)
	}
	hold, err := tokens.Hold(ctx, "user:42", 30, time.Minute)
	if err != nil {
		panic(err)
	}
	for range 5 {
		now = now.Add(20 * time.Second)
		if _, err := hold.Renew(ctx); err != nil {
			panic(err)
		}
	}
	d, err := hold.Commit(ctx, 12)
	fmt.Println(d.Remaining, err)
	// Output: 88 <nil>
}

func ExampleHold_Cancel() {
	ctx := context.Background()
	tokens, err := weir.New(weir.MustParseLimit("100/1h"), weir.WithName("tokens"))
	if err != nil {
		panic(err)
	}
	hold, err := tokens.Hold(ctx, "user:42", 30, time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println(hold.Remaining, hold.Cancel(ctx))
	d, err := tokens.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, err)
	// Output:
	// 70 <nil>
	// 100 <nil>
}

func ExampleLifeError_Error() {
	_, err := (&weir.Limiter{}).Hold(context.Background(), "user:42", 30, 0)
	fmt.Println(err)
	// Output: weir: the life of a hold is 0s; accepted: 1µs or longer
}

// Two uploads at a time: one that lasts says so, one that is done makes room.
func ExampleReservation_Renew() {
	ctx, now := context.Background(), time.Unix(1_790_000_000, 0)
	uploads, err := weir.New(weir.MustParseLimit("concurrent 2 lease=30s"), weir.WithClock(func() time.Time { return now }))
	if err != nil {
		panic(err)
	}
	upload, err := uploads.Reserve(ctx, "user:42", 1)
	if err != nil {
		panic(err)
	}
	now = now.Add(20 * time.Second)
	d, err := upload.Renew(ctx)
	fmt.Println(d.Allowed, d.ResetAfter, err)
	fmt.Println(upload.Cancel(ctx))
	d, err = uploads.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, err)
	// Output:
	// true 30s <nil>
	// <nil>
	// 2 <nil>
}

// Work renews its lease some times before it is over.
func ExampleReservation_Lease() {
	uploads := mustNew("concurrent 2 lease=30s")
	ctx := context.Background()
	upload, err := uploads.Reserve(ctx, "user:42", 1)
	if err != nil {
		panic(err)
	}
	defer upload.Cancel(ctx)
	renewals := time.NewTicker(upload.Lease() / 3)
	defer renewals.Stop()
	fmt.Println(upload.Lease())
	// Output:
	// 30s
}
