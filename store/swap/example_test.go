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

func (d *drawer) Load(_ context.Context, keys []swap.Key) ([]swap.Cell, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cells, now := make([]swap.Cell, len(keys)), time.Now().UnixMicro()
	for i, k := range keys {
		cells[i] = swap.Cell{Record: d.records[k.Name], Now: now}
	}
	return cells, nil
}

func (d *drawer) Swap(_ context.Context, changes []swap.Change) (swapped bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range changes {
		if was := d.records[c.Name]; was.Head != c.Old.Head || !slices.Equal(was.State, c.Old.State) {
			return false, nil
		}
	}
	for _, c := range changes {
		if d.records[c.Name] = c.Next; c.Next.Empty() {
			delete(d.records, c.Name)
		}
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

func ExampleStore_TakeAll() {
	s := swap.New(&drawer{records: map[string]swap.Record{}}, swap.Options{})
	var parts []store.Part
	for key, text := range map[string]string{"user:42": "3/1h", "everybody": "1000/1h"} {
		limit := algorithm.MustParseLimit(text)
		b, err := s.Bind(store.Spec{Limit: limit})
		if err != nil {
			panic(err)
		}
		parts = append(parts, store.Part{Store: s, Binding: b, Limit: limit, Key: key, Cost: 2})
	}
	for range 2 {
		outcomes, err := store.TakeAll(context.Background(), parts, store.OwnClock)
		fmt.Println(outcomes[0].Granted >= 0 && outcomes[1].Granted >= 0, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleStep_Time() {
	step := swap.Step{Now: store.OwnClock}
	fmt.Println(step.Time(1_700_000_000_000_000))
	step.Now = 5
	fmt.Println(step.Time(1_700_000_000_000_000))
	// Output:
	// 1700000000000000
	// 5
}
