package memcached_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
)

// It needs a server, and is therefore not run.
//
//nolint:testableexamples // as above
func Example() {
	ctx := context.Background()
	s, err := memcached.Open(ctx, "memcached://10.0.0.1,10.0.0.2?prefix=shop", memcached.Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	b, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("5/1m")})
	if err != nil {
		panic(err)
	}
	v, err := b.Do(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, err)
	fmt.Println(s.TrustsClientTime(), s.Counts().Conflicts, s.Check(ctx), s.Breaker().State().Position)
}

func ExampleOpen_refused() {
	_, err := memcached.Open(context.Background(), "memcached://10.0.0.1?weight=3", memcached.Options{})
	fmt.Println(err)
	// Output: memcached: URL has the parameter "weight"; accepted: timeout, prefix, clock_skew, connections, max_calls, lazy
}
