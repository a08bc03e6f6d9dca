package store_test

import (
	"fmt"
	"time"

	"github.com/weirlimit/weir/store"
)

func ExampleNanoseconds() {
	fmt.Println(store.Nanoseconds(time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC)))
	_, ok := store.Nanoseconds(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(ok)
	// Output:
	// 1000000000 true
	// false
}
