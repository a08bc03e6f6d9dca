package store_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func ExampleNanoseconds() {
	fmt.Println(store.Nanoseconds(time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC)))
	_, ok := store.Nanoseconds(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(ok)
	// Output:
	// 1000000000 true
	// false
}

func ExampleNewNames() {
	names, err := store.NewNames("", store.Spec{Name: "login", Limit: algorithm.MustParseLimit("gcra 10/1s burst=20")})
	if err != nil {
		panic(err)
	}
	fmt.Println(names.Name("user:42"))
	_, err = store.NewNames("my app", store.Spec{})
	fmt.Println(err)
	// Output:
	// weir:1:{user:42}:login
	// weir: prefix is "my app"; accepted: up to 32 letters, digits, and any of -_.:/
}

func ExampleNames_Name() {
	names, err := store.NewNames("shop", store.Spec{Limit: algorithm.MustParseLimit("100/1m")})
	if err != nil {
		panic(err)
	}
	for _, key := range []string{"10.0.0.1 GET /", "José", "", strings.Repeat("a", 1000)} {
		fmt.Println(names.Name(key))
	}
	// Output:
	// shop:1:{10.0.0.1%20GET%20/}::100/1m
	// shop:1:{Jos%C3%A9}::100/1m
	// shop:1:{%}::100/1m
	// shop:1:{#Qe3s5C1j6Nm_UVqbppMuHCDLyfWl0TRkWttdsblzfqM}::100/1m
}

func ExampleCheckPrefix() {
	fmt.Println(store.CheckPrefix("shop"), store.CheckPrefix("*"))
	// Output: <nil> weir: prefix is "*"; accepted: up to 32 letters, digits, and any of -_.:/
}

func ExamplePattern() {
	fmt.Println(store.Pattern("shop"))
	// Output: shop:1:*
}

func ExampleCompileMicroseconds() {
	program, err := store.CompileMicroseconds(store.Spec{Limit: algorithm.MustParseLimit("7/1s")})
	if err != nil {
		panic(err)
	}
	// The time until which the key is in debt: whole microseconds, and sevenths of one.
	state, result := program.Apply(nil, algorithm.Op{Cost: 1}, 1_700_000_000_000_000)
	fmt.Println(state, result.ResetAfter)
	// Output: [1700000000142857 1] 142.858ms
}

func ExampleMicroseconds() {
	fmt.Println(store.Microseconds(1_999), store.Microseconds(-1))
	// Output: 1 -1
}

func ExampleTakeInTurn() {
	ctx, s := context.Background(), memory.New(memory.Options{})
	part := func(text string) store.Part {
		limit := algorithm.MustParseLimit(text)
		b, err := s.Bind(store.Spec{Limit: limit})
		if err != nil {
			panic(err)
		}
		return store.Part{Binding: b, Limit: limit, Key: "user:42", Cost: 3}
	}
	parts := []store.Part{part("fixed-window 100/1h"), part("fixed-window 5/1h")}
	for range 2 {
		verdicts, err := store.TakeInTurn(ctx, parts, 0, nil)
		fmt.Println(verdicts[0].Granted, verdicts[0].Remaining, verdicts[1].Granted, verdicts[1].Remaining, err)
	}
	// Output:
	// 3 97 3 2 <nil>
	// 0 97 -1 2 <nil>
}

func ExamplePart_Take() {
	limit := algorithm.MustParseLimit("5/1h")
	b, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: limit})
	if err != nil {
		panic(err)
	}
	taken, err := store.Part{Binding: b, Limit: limit, Key: "user:42", Cost: 2}.Take(context.Background(), 0)
	fmt.Println(taken.Granted, taken.Remaining, err)
	// Output: 2 3 <nil>
}

func ExampleTaken_GiveBack() {
	limit := algorithm.MustParseLimit("5/1h")
	b, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: limit})
	if err != nil {
		panic(err)
	}
	taken, err := store.Part{Binding: b, Limit: limit, Key: "user:42", Cost: 2}.Take(context.Background(), 0)
	if err != nil {
		panic(err)
	}
	v, err := taken.GiveBack(context.Background(), 0)
	fmt.Println(v.Remaining, err)
	// Output: 5 <nil>
}

func ExampleTaken_End() {
	limit := algorithm.MustParseLimit("6/1h")
	b, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: limit})
	if err != nil {
		panic(err)
	}
	taken, err := store.Part{Binding: b, Limit: limit, Key: "user:42", Cost: 1}.Take(context.Background(), 0)
	if err != nil {
		panic(err)
	}
	end, known := taken.End()
	fmt.Println(time.Duration(end), known)
	// Output: 10m0s true
}

// Two limits of one request: the second denies, and so neither is charged.
func ExampleTakeAll() {
	ctx, engine := context.Background(), memory.New(memory.Options{})
	part := func(text, key string, cost int64) store.Part {
		limit := algorithm.MustParseLimit(text)
		binding, err := engine.Bind(store.Spec{Limit: limit})
		if err != nil {
			panic(err)
		}
		return store.Part{Store: engine, Binding: binding, Limit: limit, Key: key, Cost: cost}
	}
	parts := []store.Part{part("10/1m", "user:1", 3), part("2/1m", "10.0.0.1", 3)}
	for range 2 {
		outcomes, err := store.TakeAll(ctx, parts, 0)
		if err != nil {
			panic(err)
		}
		for _, o := range outcomes {
			fmt.Println(o.Granted, o.Remaining)
		}
		parts[1].Cost = 2
	}
	// Output:
	// 0 10
	// -1 2
	// 3 7
	// 2 0
}

func ExampleOutcome_End() {
	taken := store.Outcome{Verdict: algorithm.Verdict{Granted: 1, Reset: 30 * time.Second}, At: 1000}
	fmt.Println(taken.End())
	taken.At = store.OwnClock
	_, known := taken.End()
	fmt.Println(known)
	// Output:
	// 30000001000 true
	// false
}

func ExampleSpec_Accounts() {
	limit := algorithm.MustParseLimit("10/1s")
	fmt.Println(store.Spec{Limit: limit}.Accounts(), store.Spec{Limit: limit, Name: "login"}.Accounts())
	// Output: false true
}

func ExampleTaken_Renew() {
	ctx, engine := context.Background(), memory.New(memory.Options{})
	limit := algorithm.MustParseLimit("concurrent 2 lease=30s")
	binding, err := engine.Bind(store.Spec{Limit: limit})
	if err != nil {
		panic(err)
	}
	taken, err := store.Part{Binding: binding, Limit: limit, Key: "user:42", Cost: 1}.Take(ctx, 0)
	if err != nil {
		panic(err)
	}
	taken, err = taken.Renew(ctx, int64(20*time.Second))
	end, _ := taken.End()
	fmt.Println(time.Duration(end), taken.Remaining, err)
	// Output: 50s 1 <nil>
}
