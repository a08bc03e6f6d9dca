package redis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A panic in a swap is raised in the goroutines of its callers, and not in one of the store. Later
// calls are served.
func TestPanicInASwapIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{timeout: time.Minute, lines: lines{busy: map[string][]*waiter{}}, recent: newRecent(time.Minute)}
		s.client.Store(&client{}) // panics
		for range 2 {
			raised := func() (value any) {
				defer func() { value = recover() }()
				q := &request{store: s, steps: []step{{name: "a", op: algorithm.Op{Kind: algorithm.Reserve, Cost: 1}}}}
				_, _, err := s.await(t.Context(), q, nil)
				return err
			}()
			if _, ok := raised.(interface{ Error() string }); !ok || len(s.lines.busy) > 0 {
				t.Errorf("await: %v, names in use: %v; want a panic, and none", raised, s.lines.busy)
			}
		}
	})
}
