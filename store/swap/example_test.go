package swap_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A drawer keeps states in a map. A true engine keeps them where other processes reach them, and forgets them after their life.
type drawer struct {
	mu     sync.Mutex
	states map[string][]int64
}

func (d *drawer) Load(_ context.Context, name string) (swap.Cell, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return swap.Cell{State: d.states[name], Now: time.Now().UnixMicro()}, nil
}

func (d *drawer) Swap(_ context.Context, name string, old swap.Cell, state []int64, _ time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.states[name], old.State) {
		return false, nil
	}
	d.states[name] = state
	return true, nil
}

func Example() {
	s := swap.New(&drawer{states: map[string][]int64{}}, swap.Options{})
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("3/1h")})
	if err != nil {
		panic(err)
	}
	for range 4 {
		v, err := b.Do(context.Background(), "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
		fmt.Println(v.Granted, v.Remaining, err)
	}
	fmt.Println(s.TrustsClientTime(), s.Counts().Conflicts, s.Close())
	// Output:
	// 1 2 <nil>
	// 1 1 <nil>
	// 1 0 <nil>
	// -1 0 <nil>
	// false 0 <nil>
}
