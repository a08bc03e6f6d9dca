package redis

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A panic in a swap is raised in the goroutines of its callers, and not in one of the store. Later
// calls are served.
func TestPanicInASwapIsTheCallers(t *testing.T) {
	s, err := newStore("a server", false, Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Store.Close()
	s.client.Store(&client{}) // panics
	b, err := s.Bind(store.Spec{Name: "n", Limit: algorithm.MustParseLimit("10/1m")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		raised := func() (value any) {
			defer func() { value = recover() }()
			_, err := b.Do(t.Context(), "a", algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 1, Life: 1e9}, store.OwnClock)
			return err
		}()
		if _, ok := raised.(interface{ Error() string }); !ok {
			t.Errorf("%v, want a panic", raised)
		}
	}
}
