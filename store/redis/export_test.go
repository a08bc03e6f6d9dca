package redis

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Kept returns what the server keeps for a key, and the server's time.
func Kept(ctx context.Context, b store.Binding, key string) (algorithm.Account, int64, error) {
	own := store.Unwrap(b).(*binding)
	r, err := own.store.load(ctx, "inspect", []string{own.names.Name(key)})
	if err != nil {
		return algorithm.Account{}, 0, err
	}
	values, err := r.readValues(1)
	if err != nil {
		return algorithm.Account{}, 0, err
	}
	a, err := own.account(values[0])
	return a, r.at, err
}

// Misled makes a binding tell the script the windows of other times the first n times.
func Misled(b store.Binding, n int, by int64) {
	m := &store.Unwrap(b).(*binding).machine
	windows := m.windows
	m.windows = func(now int64) []int64 {
		if n > 0 {
			n--
			now += by
		}
		return windows(now)
	}
}
