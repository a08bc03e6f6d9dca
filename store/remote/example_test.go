package remote_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

// A server in the same program, and a limiter whose state it keeps.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	daemon, err := server.New(server.Config{RESP: "127.0.0.1:0", HTTP: server.Off, Admin: server.Off})
	if err != nil {
		log.Fatal(err)
	}
	if err := daemon.Open(ctx); err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- daemon.Run(ctx) }()

	s, err := remote.Open(ctx, "weir://"+daemon.RESPAddr().String(), remote.Options{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := weir.New(weir.MustParseLimit("2/1h"), weir.WithStore(s), weir.WithName("login"))
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		d, err := limiter.Take(ctx, "user:42", 1)
		fmt.Println(d.Allowed, d.Remaining, err)
	}

	fmt.Println(s.Check(ctx), s.TrustsClientTime(), s.Tick(), s.Counts().Failures, s.Breaker().State().Position)
	fmt.Println(s.Close())
	stop()
	fmt.Println(<-done, daemon.Close())
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
	// <nil> false 1ns 0 closed
	// <nil>
	// <nil> <nil>
}

// Several limits that one request must pass.
func ExampleStore_TakeAll() {
	ctx := context.Background()
	daemon, err := server.New(server.Config{RESP: "127.0.0.1:0", HTTP: server.Off, Admin: server.Off})
	if err != nil {
		log.Fatal(err)
	}
	if err := daemon.Open(ctx); err != nil {
		log.Fatal(err)
	}
	go func() { _ = daemon.Run(ctx) }()
	s, err := remote.Open(ctx, "weir://"+daemon.RESPAddr().String(), remote.Options{})
	if err != nil {
		log.Fatal(err)
	}

	var parts []store.Part
	for key, text := range map[string]string{"user:42": "1/1h", "everybody": "1000/1h"} {
		limit := algorithm.MustParseLimit(text)
		b, err := s.Bind(store.Spec{Limit: limit})
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, store.Part{Binding: b, Limit: limit, Key: key, Cost: 1})
	}
	for range 2 {
		verdicts, err := s.TakeAll(ctx, parts, store.OwnClock, nil)
		fmt.Println(min(verdicts[0].Granted, verdicts[1].Granted), err)
	}
	fmt.Println(s.Close())
	// Output:
	// 1 <nil>
	// -1 <nil>
	// <nil>
}
