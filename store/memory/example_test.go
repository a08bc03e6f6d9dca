package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func ExampleNew() {
	s := memory.New(memory.Options{MaxKeys: 1 << 20, Overflow: memory.Share})
	limiter, err := weir.New(weir.MustParseLimit("100/1m"), weir.WithStore(s))
	if err != nil {
		panic(err)
	}
	d, err := limiter.TakeAt(context.Background(), "user:42", 1, noon)
	fmt.Println(d.Allowed, d.Remaining, err)
	// Output: true 99 <nil>
}

func ExampleStore_Bind() {
	binding, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: algorithm.MustParseLimit("3/1m")})
	if err != nil {
		panic(err)
	}
	v, err := binding.Do(context.Background(), "user:42", algorithm.Op{Kind: algorithm.Take, Cost: 2}, noon.UnixNano())
	fmt.Println(v.Granted, v.Remaining, v.Reset, err)
	// Output: 2 1 40s <nil>
}

func ExampleStore_Stats() {
	s := memory.New(memory.Options{})
	limiter, err := weir.New(weir.MustParseLimit("100/1m"), weir.WithStore(s))
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"a", "b", "a"} {
		_, _ = limiter.TakeAt(context.Background(), key, 1, noon)
	}
	fmt.Println(s.Stats().Keys)
	// Output: 2
}

func ExampleStore_Close() {
	// A store that reads the time once in a millisecond has a goroutine for that, which Close ends.
	s := memory.New(memory.Options{ClockResolution: time.Millisecond})
	fmt.Println(s.Close())
	// Output: <nil>
}

func ExampleStore_TakeAll() {
	s := memory.New(memory.Options{})
	var parts []store.Part
	for name, text := range map[string]string{"burst": "5/1s", "quota": "1000/month"} {
		limit := algorithm.MustParseLimit(text)
		binding, err := s.Bind(store.Spec{Name: name, Limit: limit})
		if err != nil {
			panic(err)
		}
		parts = append(parts, store.Part{Store: s, Binding: binding, Limit: limit, Name: name, Key: "user:42", Cost: 3})
	}
	for range 2 {
		// Nobody sees one of the limits charged and the other not.
		outcomes, err := s.TakeAll(context.Background(), parts, noon.UnixNano(), nil)
		fmt.Println(outcomes[0].Granted >= 0 && outcomes[1].Granted >= 0, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleStore_Largest() {
	s := memory.New(memory.Options{})
	login, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("5/min")})
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"user:1", "user:2"} {
		if _, err := login.Do(context.Background(), key, algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
			panic(err)
		}
	}
	largest := s.Largest()
	fmt.Println(largest.Name, largest.Keys)
	// Output: login 2
}
