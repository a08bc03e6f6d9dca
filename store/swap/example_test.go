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

// A drawer keeps records in a map. A true engine keeps them where other processes reach them, and forgets them after their life.
type drawer struct {
	mu      sync.Mutex
	records map[string]swap.Record
}

func (d *drawer) Load(_ context.Context, name string) (swap.Cell, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return swap.Cell{Record: d.records[name], Now: time.Now().UnixMicro()}, nil
}

func (d *drawer) Swap(_ context.Context, name string, old swap.Cell, next swap.Record, _ time.Duration) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if was := d.records[name]; was.Head != old.Head || !slices.Equal(was.State, old.State) {
		return false, nil
	}
	if d.records[name] = next; next.Empty() {
		delete(d.records, name)
	}
	return true, nil
}

func Example() {
	s := swap.New(&drawer{records: map[string]swap.Record{}}, swap.Options{})
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
