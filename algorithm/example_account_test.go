package algorithm_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func ExampleAccount_Apply() {
	ten, twenty := compiled("10/1h"), compiled("20/1h")
	var account algorithm.Account // of a key never seen
	for _, limit := range []*algorithm.Program{ten, twenty, ten, twenty} {
		var r algorithm.Result
		account, r = account.Apply(limit, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 100}, 0)
		fmt.Println(limit.Limit(), "grants", r.Granted)
	}
	// Output:
	// 10/1h grants 10
	// 20/1h grants 10
	// 10/1h grants 0
	// 20/1h grants 0
}

// A cost that is known at the end: 30 are reserved, 45 were used.
func ExampleAccount_Apply_payLater() {
	tokens := compiled("fixed-window 100/1h")
	var account algorithm.Account
	for _, op := range []algorithm.Op{
		{Kind: algorithm.Reserve, ID: 1, Cost: 30, Life: second(60)},
		{Kind: algorithm.Commit, ID: 1, Cost: 45},
		{Kind: algorithm.Commit, ID: 1, Cost: 45}, // settled already
		{Kind: algorithm.Reserve, ID: 2, Cost: 50, Life: second(60)},
	} {
		var r algorithm.Result
		account, r = account.Apply(tokens, op, 0)
		fmt.Println(r.Allowed, r.Remaining)
	}
	_, r := account.Apply(tokens, algorithm.Op{}, second(60)) // nobody settled the second
	fmt.Println(r.Remaining)
	// Output:
	// true 70
	// true 55
	// false 55
	// true 5
	// 55
}

func ExampleAccount_Head() {
	ten, twenty := compiled("10/1h"), compiled("20/1h")
	account, _ := algorithm.Account{}.Apply(ten, algorithm.Op{Cost: 10}, 0)
	fmt.Println(account.Head(), account.State)
	account, _ = account.Apply(twenty, algorithm.Op{Cost: 2}, 0)
	fmt.Println(account.Head(), account.State)
	// Output:
	// 10/1h [3600000000000]
	// 20/1h [2160000000000]
}

func ExampleReadHead() {
	twenty := compiled("20/1h")
	account, err := algorithm.ReadHead(twenty, "10/1h", []int64{3600000000000})
	if err != nil {
		panic(err)
	}
	_, r := account.Apply(twenty, algorithm.Op{Cost: 5}, 0)
	fmt.Println(r.Allowed, r.Remaining)
	_, err = algorithm.ReadHead(twenty, "10/1h", []int64{1, 2})
	fmt.Println(err)
	// Output:
	// true 5
	// weir: the state [1 2] is none that 10/1h makes; it stays until it is reset
}

func ExampleProgram_Head() {
	fmt.Println(compiled("gcra 10/1s burst=10").Head())
	// Output: gcra 10/1s
}

func ExampleAccount_Plain() {
	monthly, raised, hourly := compiled("1000/month"), compiled("2000/month"), compiled("100/1h")
	account, _ := algorithm.Account{}.Apply(monthly, algorithm.Op{Cost: 10}, 0)
	fmt.Println(account.Plain(monthly), account.Plain(raised))
	account, _ = account.Apply(raised, algorithm.Op{Cost: 10}, 0) // an admission makes it the limit's
	fmt.Println(account.Plain(raised))
	account, _ = account.Apply(hourly, algorithm.Op{}, 0) // a peek does not
	fmt.Println(account.Plain(hourly))
	// Output:
	// true false
	// true
	// false
}

func ExampleAccount_Life() {
	limit := compiled("10/10s")
	account, _ := algorithm.Account{}.Apply(limit, algorithm.Op{Cost: 3}, 0)
	fmt.Println(time.Duration(account.Life(0)), account.Life(second(4)))
	// Output: 3s 0
}

func ExampleAccount_Fresh() {
	limit := compiled("10/10s")
	account, _ := algorithm.Account{}.Apply(limit, algorithm.Op{Cost: 3}, 0)
	fmt.Println(account.Fresh(second(2)), account.Fresh(second(3)))
	// Output: false true
}

func ExampleAccount_Heal() {
	limit := compiled("10/10s")
	account, _ := algorithm.Account{}.Apply(limit, algorithm.Op{Cost: 3}, second(3600))
	fmt.Println(account.Heal(0), account.Heal(0)) // the clock was set back by an hour
	fmt.Println(time.Duration(account.Life(0)))
	// Output:
	// true false
	// 10s
}

func ExampleAccount_Check() {
	limit := compiled("fixed-window 10/1h")
	fmt.Println(algorithm.Account{Program: limit, State: []int64{0, 11}}.Check())
	// Output: weir: the state [0 11] is none that fixed-window 10/1h makes; it stays until it is reset
}

func ExampleUnit() {
	limit := algorithm.Limit{Algorithm: algorithm.Calendar, Count: 500, Unit: algorithm.Day, Zone: "Europe/Berlin", Anchor: 15}
	program, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		panic(err)
	}
	// The day before clocks are set forward has 23 hours.
	at := time.Date(2026, time.March, 28, 14, 0, 0, 0, time.UTC)
	_, r := program.Apply(nil, algorithm.Op{Cost: 1}, at.UnixNano())
	fmt.Println(program.Limit(), r.Remaining, r.ResetAfter)
	// Output: 500/day tz=Europe/Berlin anchor=15 499 23h0m0s
}

func ExampleProgram_Windows() {
	at := time.Date(2026, time.February, 10, 0, 0, 0, 0, time.UTC)
	for _, edge := range compiled("1000/month").Windows(at.UnixNano()) {
		fmt.Println(time.Unix(0, edge).UTC().Format(time.DateOnly))
	}
	// Output:
	// 2026-01-01
	// 2026-02-01
	// 2026-03-01
	// 2026-04-01
}

// compiled is a program of nanoseconds.
func compiled(text string) *algorithm.Program {
	p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	return p
}
