package store_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func bindExample(text, name string) *store.Bound {
	b, err := store.Bind(memory.New(memory.Options{}), store.Spec{Limit: algorithm.MustParseLimit(text), Name: name}, store.Deny)
	if err != nil {
		panic(err)
	}
	return b
}

// A limit is bound once, and then decides many requests.
func ExampleBind() {
	b, err := store.Bind(memory.New(memory.Options{}), store.Spec{Limit: algorithm.MustParseLimit("2/60s")}, store.LocalShare(0.5))
	if err != nil {
		panic(err)
	}
	v, err := b.Do(context.Background(), "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, err)
	fmt.Println(b.Text(), b.Capacity, b.OnError)
	// Output:
	// 1 1 <nil>
	// 2/1m 2 local 50%
}

func ExampleBound_Decision() {
	b := bindExample("2/1h", "")
	v, err := b.Do(context.Background(), "user:42", algorithm.Op{Cost: 3}, store.OwnClock)
	d := b.Decision(v)
	fmt.Println(d.Allowed, d.Limit, d.Remaining, d.RetryAfter == algorithm.Never, err)
	// Output: false 2 2 true <nil>
}

func ExampleBound_DoStamped() {
	b := bindExample("concurrent 1 lease=30s", "")
	v, at, err := b.DoStamped(context.Background(), "report", algorithm.Op{Cost: 1}, store.OwnClock)
	end, known := store.Outcome{Verdict: v, At: at}.End()
	fmt.Println(time.Duration(end-at), known, err)
	// Output: 30s true <nil>
}

// Two limits are charged together.
func ExampleBound_Part() {
	s := memory.New(memory.Options{})
	var parts []store.Part
	for _, text := range []string{"5/1s", "100/1h"} {
		b, err := store.Bind(s, store.Spec{Limit: algorithm.MustParseLimit(text)}, store.Deny)
		if err != nil {
			panic(err)
		}
		parts = append(parts, b.Part("user:42", 2))
	}
	outcomes, err := store.TakeAll(context.Background(), parts, store.OwnClock)
	fmt.Println(outcomes[0].Remaining, outcomes[1].Remaining, err)
	// Output: 3 98 <nil>
}

func ExampleBound_TakeMany() {
	b := bindExample("1/1h", "login")
	requests := []store.KeyCost{{Key: "ann", Cost: 1}, {Key: "bob", Cost: 1}, {Key: "ann", Cost: 1}}
	decisions, err := b.TakeMany(context.Background(), requests, store.OwnClock, nil)
	for _, d := range decisions {
		fmt.Print(d.Allowed, " ")
	}
	fmt.Println(err)
	// Output: true true false <nil>
}

func ExampleBound_Text() {
	fmt.Println(bindExample("100/60s", "").Text())
	// Output: 100/1m
}
