package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Options are what the suite asks of a store that it opens.
type Options struct {
	// TrustClientTime: the store takes the time of an operation from its caller.
	TrustClientTime bool
}

// A Harness is what the suite must know about a store. Only Open is required.
type Harness struct {
	// Open returns a store, such as a client of an engine, which it closes at the end of t. If Process is set, all
	// that it returns during one Run must be on one engine. It is called in the goroutine of t. The suite may have 200
	// operations under way at a time, on a busy machine: timeouts should be generous.
	Open func(t testing.TB, o Options) store.Store

	// Process says where the engine is to the open function of [Main], which runs in other processes. Leave it empty for a
	// store that no other process, nor another store of this one, can share.
	Process string

	// Restart restarts the engine, and returns when it is ready. Nil if there is nothing to restart.
	Restart func(t testing.TB)
	// Persistent says that what was used is still used after Restart.
	Persistent bool

	// InTurn says that the store, although a store.Joiner, may take the parts of a request one after another and give back. Of that
	// some limits keep a trace: the suite then uses others, and does not ask that somebody passes whenever there is room.
	InTurn bool

	// Deployment states that another Run holds the store to all rules, with the same engine started in another way. With
	// -short this Run then skips the rules that do not depend on how the engine runs; without it, all rules run.
	Deployment bool

	// Tick is in what the store counts; 0 means time.Microsecond.
	Tick time.Duration

	// Refuses returns why the store refuses a limit that makes sense, and "" for others; nil is for a store that refuses none
	// but those that [algorithm.Compile] does for its Tick.
	Refuses func(algorithm.Limit) (reason string)
}

// Run holds a store to all rules.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("weir: Harness.Open is nil; accepted: a function that returns a store")
	}
	s := newSuite(h)
	t.Cleanup(s.crew.dismiss)
	for _, rule := range rules {
		t.Run(rule.Name, func(t *testing.T) {
			if h.Deployment && testing.Short() && !slices.Contains(deploymentRules, rule.Name) {
				t.Skip("-short: the rule does not depend on how the engine runs")
			}
			s.hold(t, rule)
		})
	}
}
