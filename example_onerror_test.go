package weir_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

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
