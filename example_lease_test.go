package weir_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
)

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
