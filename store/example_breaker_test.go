package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// down returns a breaker of an engine that can't be reached.
func down() *store.Breaker {
	return store.NewBreaker(store.BreakerOptions{
		Engine: "redis at 10.0.0.1:6379",
		Classify: func(err error) store.Cause {
			if errors.Is(err, errDown) {
				return store.CauseConnection
			}
			return store.CauseRejection
		},
		Probe: func(context.Context, *store.Circuit, bool) error { return errDown },
	})
}

// ask is a call to an engine that can't be reached.
func ask(context.Context) (int, error) { return 0, errDown }

// After three calls that failed the engine is not asked any more.
func ExampleNewBreaker() {
	b := down()
	defer b.Close()
	for range 4 {
		_, err := store.Through(context.Background(), b.Circuit(""), ask)
		fmt.Println(errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrNothingDone))
	}
	// Output:
	// false false
	// false false
	// false false
	// true true
}

// A log has the outage, and not each call that was refused because of it.
func ExampleIsCircuitOpen() {
	b := down()
	defer b.Close()
	for range 4 {
		if _, err := store.Through(context.Background(), b.Circuit(""), ask); store.IsCircuitOpen(err) {
			fmt.Println("not logged")
		} else {
			fmt.Println(err)
		}
	}
	// Output:
	// connection refused
	// connection refused
	// connection refused
	// not logged
}

func ExampleThrough() {
	b := down()
	defer b.Close()
	n, err := store.Through(context.Background(), b.Circuit(""), func(context.Context) (int, error) { return 5, nil })
	fmt.Println(n, err)
	_, err = store.Through(context.Background(), b.Circuit(""), ask)
	fmt.Println(err)
	// Output:
	// 5 <nil>
	// connection refused
}

func ExampleBreaker_Bind() {
	b := down()
	defer b.Close()
	inner, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: algorithm.MustParseLimit("5/1m")})
	if err != nil {
		panic(err)
	}
	binding := b.Bind(inner, func(string) *store.Circuit { return b.Circuit("") })
	v, err := binding.Do(context.Background(), "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Remaining, err)
	// Output: 4 <nil>
}

func ExampleUnwrap() {
	b := down()
	defer b.Close()
	inner, err := memory.New(memory.Options{}).Bind(store.Spec{Limit: algorithm.MustParseLimit("5/1m")})
	if err != nil {
		panic(err)
	}
	binding := b.Bind(inner, func(string) *store.Circuit { return b.Circuit("") })
	fmt.Println(store.Unwrap(binding) == inner, store.Unwrap(inner) == inner)
	// Output: true true
}

// Each node of an engine has a circuit of its own.
func ExampleBreaker_Circuit() {
	b := down()
	defer b.Close()
	first, again, second := b.Circuit("10.0.0.1"), b.Circuit("10.0.0.1"), b.Circuit("10.0.0.2")
	fmt.Println(first == again, first == second)
	// Output: true false
}

func ExampleCircuit_Node() {
	b := down()
	defer b.Close()
	fmt.Println(b.Circuit("10.0.0.1").Node())
	// Output: 10.0.0.1
}

// A store that is opened without its engine refuses calls until a probe succeeds.
func ExampleBreaker_Trip() {
	b := down()
	defer b.Close()
	b.Trip(b.Circuit(""), errors.New("there was no connection yet"))
	_, err := store.Through(context.Background(), b.Circuit(""), ask)
	fmt.Println(errors.Is(err, store.ErrUnavailable))
	// Output: true
}

func ExampleBreaker_State() {
	b := down()
	fmt.Println(b.State().Position)
	b.Trip(b.Circuit("10.0.0.1"), errDown)
	b.Close()
	s := b.State()
	fmt.Println(s.Position != store.Closed, s.Node, s.Cause, time.Since(s.Since) < time.Hour)
	// Output:
	// closed
	// true 10.0.0.1 connection refused true
}

func ExampleBreaker_States() {
	b := down()
	defer b.Close()
	b.Circuit("10.0.0.1")
	b.Circuit("10.0.0.2")
	for _, s := range b.States() {
		fmt.Println(s.Node, s.Position)
	}
	// Output:
	// 10.0.0.1 closed
	// 10.0.0.2 closed
}

func ExamplePosition_String() {
	fmt.Println(store.Closed, store.Open, store.HalfOpen)
	// Output: closed open half-open
}

// A program logs when a circuit opens or closes.
func ExampleBreaker_Notify() {
	b := down()
	opened := make(chan error)
	b.Notify(func(s store.BreakerState) { opened <- s.Cause })
	b.Trip(b.Circuit(""), errDown)
	fmt.Println(<-opened)
	b.Close()
	// Output: connection refused
}

func ExampleBreaker_Count() {
	b := down()
	defer b.Close()
	for range 5 {
		_, _ = store.Through(context.Background(), b.Circuit(""), ask)
	}
	var c store.Counts
	b.Count(&c)
	fmt.Println(c.Disconnections, c.Opened, c.Refused, c.Calls)
	// Output: 3 1 2 0
}

func ExampleBreaker_Retain() {
	b := down()
	defer b.Close()
	b.Circuit("10.0.0.1")
	b.Retain(b.Circuit("10.0.0.2"))
	fmt.Println(len(b.States()), b.State().Node)
	// Output: 1 10.0.0.2
}

func ExampleBreaker_Timeout() {
	b := down()
	defer b.Close()
	fmt.Println(b.Timeout())
	// Output: 1s
}

// Several calls have the time of one.
func ExampleBreaker_Within() {
	b := down()
	defer b.Close()
	ctx, cancel := b.Within(context.Background(), time.Minute)
	defer cancel()
	_, bounded := ctx.Deadline()
	fmt.Println(bounded)
	// Output: true
}

func ExampleTimedOut() {
	b := down()
	defer b.Close()
	ctx, cancel := b.Within(context.Background(), 0)
	defer cancel()
	ended, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(store.TimedOut(ctx), store.TimedOut(ended))
	// Output: true false
}

// The probes end with the breaker.
func ExampleBreaker_Close() {
	b := down()
	b.Trip(b.Circuit(""), errDown)
	b.Close()
	fmt.Println(b.State().Position == store.Closed)
	// Output: false
}

func ExampleBreaker_Observe() {
	b := down()
	defer b.Close()
	b.Observe(func(c store.Call) {
		fmt.Println(c.Kind == store.CallTakeAll, c.Err, c.Cause == store.CauseConnection)
	})
	_, _ = store.Through(context.Background(), b.Circuit(""), ask)
	// Output: true connection refused true
}
