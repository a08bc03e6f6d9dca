package server

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weirlimit/weir/store"
)

// An outage logs when the engine of the store stops to serve and when it serves again, once each, and
// describes the current state.
type outage struct {
	log     *slog.Logger
	shown   string // the store, for people
	onError store.OnError
	counts  []func() int64 // of decisions without the store

	mu      sync.Mutex
	breaker *store.Breaker // nil: there is none
	before  map[string]absence
}

// An absence is an outage of a node of the engine.
type absence struct {
	since   time.Time
	without int64 // decisions without the store before
}

// follow follows the circuits of a store that has some.
func (o *outage) follow(k *kept) {
	guarded, ok := k.Store.(store.Guarded)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.breaker, o.before, o.shown = guarded.Breaker(), map[string]absence{}, k.shown
	o.breaker.Notify(o.changed)
	for _, state := range o.breaker.States() {
		if state.Position != store.Closed { // opened without the engine
			o.begin(state.Node, state.Since, state.Cause)
		}
	}
}

func (o *outage) changed(state store.BreakerState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch _, away := o.before[state.Node]; {
	case state.Position == store.Open && !away:
		o.begin(state.Node, state.Since, state.Cause)
	case state.Position == store.Closed && away:
		o.end(state.Node)
	}
}

// begin logs the start of an outage. The caller holds the mutex.
func (o *outage) begin(node string, since time.Time, cause error) {
	o.before[node] = absence{since, o.without()}
	o.log.Warn("store: the engine does not serve; requests are decided without it until it does", "store", o.shown,
		"node", node, "error", withoutKeys(cause), "on_store_error", o.onError.String())
}

// end logs the end of an outage. The caller holds the mutex.
func (o *outage) end(node string) {
	a := o.before[node]
	delete(o.before, node)
	o.log.Info("store: the engine serves again", "store", o.shown, "node", node,
		"away", time.Since(a.since).Round(time.Millisecond), "decided_without", o.without()-a.without)
}

func (o *outage) without() (n int64) {
	for _, count := range o.counts {
		n += count()
	}
	return n
}

// text returns since when the engine has not served, and why, or nothing.
func (o *outage) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.breaker == nil {
		return ""
	}
	state := o.breaker.State()
	if state.Position == store.Closed {
		return ""
	}
	node := ""
	if state.Node != "" {
		node = " at " + state.Node
	}
	return fmt.Sprintf("the engine%s has not served since %s: %s", node, state.Since.UTC().Format(time.RFC3339), withoutKeys(state.Cause))
}

func withoutKeys(err error) string {
	if err == nil {
		return "unknown"
	}
	return store.WithoutKeys(err)
}
