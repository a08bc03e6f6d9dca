package decide_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A request that the store failed to decide is decided by a share of the limit.
func ExampleWithout() {
	ctx := context.Background()
	bound, err := store.Bind(memory.New(memory.Options{}), store.Spec{Limit: algorithm.MustParseLimit("8/1h")}, store.Deny)
	if err != nil {
		panic(err)
	}
	quarter, err := decide.Without(ctx, bound, store.LocalShare(0.25), errors.New("connection refused"))
	if err != nil {
		panic(err)
	}
	v, err := quarter.Do(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	d := quarter.Decision(v)
	fmt.Println(d.Allowed, d.Remaining, d.Failed, d.Local, err)
	// Output: true 1 true true <nil>
}
