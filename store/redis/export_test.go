package redis

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

func keyOf(b store.Binding, key string) swap.Key {
	return store.Unwrap(b).(interface{ Key(key string) swap.Key }).Key(key)
}

// Kept returns the account that the server stores for a key, and the server's time.
func Kept(ctx context.Context, s *Store, b store.Binding, key string) (a algorithm.Account, at int64, err error) {
	k := keyOf(b, key)
	cells, err := engine{s}.Load(ctx, []swap.Key{k})
	if err != nil {
		return a, 0, err
	}
	c := cells[0]
	if a = (algorithm.Account{Program: k.Limit.Program, State: c.State}); c.Foreign == nil && k.Limit.Accounts {
		a, c.Foreign = algorithm.ReadHead(k.Limit.Program, c.Head, c.State)
	}
	return a, c.Now, c.Foreign
}

// Misled makes a binding send the script the windows of other times the first n times.
func Misled(b store.Binding, n int, by int64) {
	m := &compiled(keyOf(b, "")).machine
	windows := m.windows
	m.windows = func(now int64) []int64 {
		if n > 0 {
			n--
			now += by
		}
		return windows(now)
	}
}
