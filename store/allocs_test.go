package store_test

import (
	"context"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// What the store is given, and what it answers, is on the heap; nothing else of a few parts is.
func TestWhatTakeAllAllocates(t *testing.T) {
	s := memory.New(memory.Options{})
	var parts []store.Part
	for _, name := range []string{"a", "b", "c", "d"} {
		limit := algorithm.MustParseLimit("1000000000/1s")
		b, err := s.Bind(store.Spec{Limit: limit, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, store.Part{Store: s, Binding: b, Limit: limit, Name: name, Key: "k", Cost: 1})
	}
	for i := range parts {
		n := testing.AllocsPerRun(200, func() {
			if _, err := store.TakeAll(context.Background(), parts[:i+1], store.OwnClock); err != nil {
				t.Fatal(err)
			}
		})
		if n > 2 {
			t.Errorf("%d parts: %v allocations, want at most 2", i+1, n)
		}
	}
}
