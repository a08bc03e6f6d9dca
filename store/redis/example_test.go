package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// It needs a server, and is therefore not run.
//
//nolint:testableexamples // as above
func Example() {
	ctx := context.Background()
	s, err := redis.Open(ctx, "redis://10.0.0.1?prefix=shop", redis.Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	limit := algorithm.MustParseLimit("5/1m")
	b, err := s.Bind(store.Spec{Name: "login", Limit: limit})
	if err != nil {
		panic(err)
	}
	v, err := b.Do(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, err)
	verdicts, err := s.TakeAll(ctx, []store.Part{{Binding: b, Limit: limit, Key: "user:42", Cost: 2}}, store.OwnClock, nil)
	fmt.Println(verdicts, err)
	fmt.Println(s.TrustsClientTime(), s.Counts().Reloads, s.Check(ctx), s.Breaker().State().Position)
}

//nolint:testableexamples // it needs a server
func ExampleNew() {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"10.0.0.1:6379"}, DisableCache: true})
	if err != nil {
		panic(err)
	}
	s, err := redis.New(client, redis.Options{Prefix: "shop"})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Check(context.Background()))
}

func ExampleOpen_refused() {
	_, err := redis.Open(context.Background(), "redis://user:secret@10.0.0.1/zero", redis.Options{})
	fmt.Println(err)
	// Output: redis: URL has database "zero"; accepted: a number from 0
}
