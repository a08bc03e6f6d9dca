package weir_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirlimit/weir"
)

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
