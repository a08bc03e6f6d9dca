package policy_test

import (
	"slices"
	"testing"

	"github.com/weirlimit/weir/policy"
)

func names(d policy.Decision) (list []string) {
	for _, l := range d.Each {
		list = append(list, l.Name)
	}
	return list
}

// What clients are told that a limit is called is one limit's alone, whatever plan applies.
func TestNamesOfLimits(t *testing.T) {
	s := newSet(t, `
policies:
  - {name: one, key: "attribute:who", limits: [10/1s], candidate: [5/1s], plans: {gold: [20/1s, {name: day, limit: 90/24h}], out: deny, free: unlimited}}
  - {name: two, key: all, limits: [10/1s, {name: day, limit: 100/24h}]}
  - {name: three, key: all, limits: [10/1s], mode: shadow}
`, policy.Options{Clients: staticClients{"gus": plan("gold"), "eve": plan("out"), "fay": plan("free"), "own": own("one", "7/1s"), "two": own("one", "7/1s", "9/1h")}})
	for who, want := range map[string][]string{
		"":    {"one", "one/candidate/1", "two/1", "two/day", "three"},
		"gus": {"one/1", "one/day", "two/1", "two/day", "three"},
		"eve": {"one", "two/1", "two/day", "three"},
		"fay": {"one", "two/1", "two/day", "three"},
		"own": {"one", "two/1", "two/day", "three"},
		"two": {"one/1", "one/2", "two/1", "two/day", "three"},
	} {
		if got := names(check(t, s, request("GET /", "who="+who))); !slices.Equal(got, want) {
			t.Errorf("the limits of %q are called %q, want %q", who, got, want)
		}
	}
}

// A limit of which nothing is known says so, and one that this process alone decided.
func TestFailedLimits(t *testing.T) {
	s := newSet(t, `
policies:
  - {name: deny, key: all, match: {path: /deny}, limits: [10/1s]}
  - {name: allow, key: all, match: {path: [/deny, /pass]}, limits: [10/1s], on_store_error: allow}
  - {name: local, key: all, match: {path: [/deny, /pass]}, limits: [10/1s], on_store_error: local}
  - {name: plan, key: "attribute:who", limits: [10/1s], plans: {free: unlimited}}
`, policy.Options{Store: &failingStore{}, Clients: staticClients{"fay": plan("free")}})
	for line, want := range map[string][]bool{"GET /deny": {true, true, true, false}, "GET /pass": {true, true, false}} {
		for _, l := range check(t, s, request(line, "who=fay")).Each {
			if l.Failed != want[0] || l.Local != (l.Policy == "local") {
				t.Errorf("%s: %s has failed: %v, locally decided: %v", line, l.Policy, l.Failed, l.Local)
			}
			want = want[1:]
		}
	}
}
