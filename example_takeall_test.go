package weir_test

import (
	"context"
	"fmt"

	"github.com/weirlimit/weir"
)

func ExampleTakeAll() {
	perHour, err := weir.New(weir.MustParseLimit("100/1h"))
	if err != nil {
		panic(err)
	}
	perSecond, err := weir.New(weir.MustParseLimit("2/1s"))
	if err != nil {
		panic(err)
	}
	for range 3 {
		d, each, err := weir.TakeAll(context.Background(),
			weir.Charge{Limiter: perHour, Key: "user:42", Cost: 1}, weir.Charge{Limiter: perSecond, Key: "user:42", Cost: 1})
		fmt.Println(d.Allowed, each[0].Remaining, each[1].Allowed, err)
	}
	// Output:
	// true 99 true <nil>
	// true 98 true <nil>
	// false 98 false <nil>
}
