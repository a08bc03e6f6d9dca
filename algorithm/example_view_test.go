package algorithm_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func ExampleAccount_View() {
	compile := func(text string) *algorithm.Program {
		p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Nanosecond)
		if err != nil {
			panic(err)
		}
		return p
	}
	hourly, daily := compile("fixed-window 10/1h"), compile("fixed-window 100/24h")
	account, _ := algorithm.Account{}.Apply(hourly, algorithm.Op{Cost: 4}, 0)
	// Windows are numbered from 1970 on: in the first hour, 4 are used, and so they are in the first day.
	fmt.Println(account.View(hourly, 0), account.View(daily, 0), account.Head())
	// Output: [0 4] [0 4] fixed-window 10/1h
}
