package store_test

import (
	"errors"
	"fmt"

	"github.com/weirlimit/weir/store"
)

var errForeign = errors.New("WRONGTYPE")

func ExampleKeyError_Error() {
	fmt.Println(&store.KeyError{Key: "weir:ann", Err: errForeign})
	// Output: WRONGTYPE: the value of "weir:ann" is no state of this limit
}

func ExampleKeyError_Unwrap() {
	fmt.Println(errors.Is(&store.KeyError{Key: "weir:ann", Err: errForeign}, errForeign))
	// Output: true
}

func ExampleWithoutKeys() {
	err := fmt.Errorf("redis: take: %w", &store.KeyError{Key: "weir:ann", Err: errForeign})
	fmt.Println(store.WithoutKeys(err))
	// Output: redis: take: WRONGTYPE: the value of a key is no state of this limit
}
