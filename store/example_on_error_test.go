package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

func ExampleParseOnError() {
	for _, text := range []string{"deny", "allow", "local", "local 25%", "local 100%", "local 0%"} {
		fmt.Println(store.ParseOnError(text))
	}
	// Output:
	// deny <nil>
	// allow <nil>
	// local <nil>
	// local 25% <nil>
	// local <nil>
	// deny weir: the decision while the store fails is "local 0%"; accepted: deny, allow, local, or local with a share of the limit, such as local 25%
}

func ExampleLocalShare() {
	fmt.Println(store.LocalShare(0.25), store.LocalShare(1) == store.Local)
	// Output: local 25% true
}

func ExampleOnError_String() {
	fmt.Println(store.Deny, store.Allow, store.Local, store.LocalShare(1.0/3))
	// Output: deny allow local local 33.3333%
}

func ExampleOnError_Limit() {
	fmt.Println(store.LocalShare(0.25).Limit(algorithm.MustParseLimit("100/1m")))
	_, err := store.LocalShare(25).Limit(algorithm.MustParseLimit("100/1m"))
	fmt.Println(err)
	// Output:
	// 25/1m <nil>
	// weir: the local share of the limit while the store fails is out of range; accepted: a share of 0.000001 to 1
}

func ExampleWithOnError() {
	ctx := store.WithOnError(context.Background(), store.Allow)
	fmt.Println(store.OnErrorOf(ctx, store.Deny))
	// Output: allow
}

func ExampleOnErrorOf() {
	fmt.Println(store.OnErrorOf(context.Background(), store.Local))
	// Output: local
}

func ExampleIsFailure() {
	ctx := context.Background()
	fmt.Println(store.IsFailure(ctx, errors.New("connection refused")), store.IsFailure(ctx, store.ErrTime))
	// Output: true false
}
