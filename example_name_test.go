package weir_test

import (
	"fmt"

	"github.com/weirlimit/weir"
)

func ExampleLimiter_Name() {
	logins, err := weir.New(weir.MustParseLimit("5/1m"), weir.WithName("logins"))
	if err != nil {
		panic(err)
	}
	fmt.Println(logins.Name())
	// Output: logins
}
