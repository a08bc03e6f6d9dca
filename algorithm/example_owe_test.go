package algorithm_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A debt is paid by the next operation.
func ExampleAccount_Owe() {
	p, err := algorithm.Compile(algorithm.MustParseLimit("10/1h"), time.Nanosecond)
	if err != nil {
		panic(err)
	}
	a := algorithm.Account{}.Owe(p, 4, 0)
	_, r := a.Apply(p, algorithm.Op{}, 0)
	fmt.Println(r.Remaining)
	// Output: 6
}
