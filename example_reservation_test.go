package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
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

func ExampleLimiter_Acquire() {
	reports := mustNew("concurrent 2 lease=30s") // two at a time for each user
	ctx := context.Background()

	lease, err := reports.Acquire(ctx, "user:42", 1) // blocks while two are being made
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := reports.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, err)

	fmt.Println(lease.Release(ctx))
	d, err = reports.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, err)
	// Output:
	// 1 <nil>
	// <nil>
	// 2 <nil>
}

func ExampleLease_Context() {
	reports := mustNew("concurrent 2 lease=30s")
	makeReport := func(ctx context.Context) error {
		lease, err := reports.Acquire(ctx, "user:42", 1)
		if err != nil {
			return err
		}
		defer lease.Release(ctx)

		work := lease.Context(ctx) // ends if the lease is lost
		select {
		case <-work.Done():
			return context.Cause(work)
		case <-time.After(time.Millisecond): // the work
			return nil
		}
	}
	fmt.Println(makeReport(context.Background()))
	// Output: <nil>
}

func ExampleLease_Release() {
	exports := mustNew("concurrent 1 lease=30s")
	ctx := context.Background()
	lease, err := exports.Acquire(ctx, "account:7", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Write the export, and publish it only if no one else can have had the place meanwhile.
	if err := lease.Release(ctx); errors.Is(err, weir.ErrLeaseLost) {
		fmt.Println("throw the export away")
		return
	}
	fmt.Println("published")
	// Output: published
}

func ExampleTakeAll() {
	perHour, err := weir.New(weir.MustParseLimit("100/1h"))
	if err != nil {
		panic(err)
	}
	perSecond, err := weir.New(weir.MustParseLimit("2/1s"))
	if err != nil {
		panic(err)
	}
	for range 3 {
		d, each, err := weir.TakeAll(context.Background(),
			weir.Charge{Limiter: perHour, Key: "user:42", Cost: 1}, weir.Charge{Limiter: perSecond, Key: "user:42", Cost: 1})
		fmt.Println(d.Allowed, each[0].Remaining, each[1].Allowed, err)
	}
	// Output:
	// true 99 true <nil>
	// true 98 true <nil>
	// false 98 false <nil>
}

// An absentStore has an engine that is down.
type absentStore struct{ address string }

func (s *absentStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (*absentStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("connection refused")
}

// Each of four processes admits a quarter of the limit while the store fails.
func ExampleWithOnStoreError() {
	limiter, err := weir.New(weir.MustParseLimit("8/1h"), weir.WithStore(&absentStore{"192.0.2.1:6379"}), weir.WithOnStoreError(store.LocalShare(0.25)))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 3 {
		d, err := limiter.Take(ctx, "user:42", 1)
		fmt.Println(d.Allowed, d.Remaining, d.Failed, d.Local, err)
	}
	// for one call: let the request pass
	d, err := limiter.Take(store.WithOnError(ctx, store.Allow), "user:42", 1)
	fmt.Println(d.Allowed, d.Failed, d.Local, err)
	// Output:
	// true 1 true true <nil>
	// true 0 true true <nil>
	// false 0 true true <nil>
	// true true false <nil>
}

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
