package policy_test

import (
	"context"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// What is allocated for a decision is what is handed out with it: the key, what stands for each limit, and of a denial who denied. Of several limits the store is given a list, and gives one.
func TestWhatADecisionAllocates(t *testing.T) {
	s := newSet(t, `
policies:
  - {name: one, match: {path: /one, method: GET, not: {header: {X-Free: "*"}}}, key: client_ip, limits: [1000000000/1s]}
  - {name: all, match: {path: /all}, key: all, limits: [1000000000/1s]}
  - {name: denied, match: {path: /denied}, key: all, limits: [fixed-window 1/24h]}
  - {name: two, match: {path: /two}, key: client_ip, limits: [1000000000/1s, 1000000000/1m]}
  - {name: tried, match: {path: /tried}, key: all, limits: [1000000000/1s], candidate: [1000000000/1m]}
`, policy.Options{})
	for _, c := range []struct {
		line string
		most float64
	}{{"GET /none", 0}, {"GET /one", 2}, {"GET /all", 1}, {"GET /denied", 2}, {"GET /two", 4}, {"GET /tried", 1}} {
		r := request(c.line)
		check(t, s, r)
		n := testing.AllocsPerRun(200, func() {
			if _, err := s.Check(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		})
		if n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.line, n, c.most)
		}
	}
}
