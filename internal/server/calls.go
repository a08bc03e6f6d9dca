package server

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/store"
)

// engineCalls counts the calls of a store's engine: their durations by operation, and failures by
// cause.
type engineCalls struct {
	durations [operations]latency.Histogram
	failures  map[string]*atomic.Int64 // never changed
}

// Operations of an engine besides those of decisions.
const (
	takeMany = latency.Operations + iota
	inspect
	operations
)

// answers are the codes of Redis replies that are causes of their own. Other replies count under
// causeNames.
var answers = []string{
	"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOAUTH", "NOPERM", "NOREPLICAS", "OOM", "READONLY", "TRYAGAIN", "WRONGPASS", "WRONGTYPE",
}

var causeNames = map[store.Cause]string{
	store.CauseCaller: "caller", store.CauseRejection: "rejected", store.CauseLost: "connection_lost", store.CauseConnection: "connection",
	store.CauseUnready: "unready", store.CauseTimeout: "timeout",
}

func newEngineCalls() *engineCalls {
	c := &engineCalls{failures: map[string]*atomic.Int64{}}
	for _, name := range slices.Concat(slices.Collect(maps.Values(causeNames)), answers) {
		c.failures[strings.ToLower(name)] = new(atomic.Int64)
	}
	return c
}

// observe counts a call.
func (c *engineCalls) observe(call store.Call) {
	c.durations[operationOf(call)].Observe(call.Took, 1)
	if call.Err != nil {
		c.failures[causeOf(call)].Add(1)
	}
}

func operationOf(call store.Call) latency.Operation {
	switch call.Kind {
	case store.CallTakeMany:
		return takeMany
	case store.CallTakeAll:
		return latency.TakeAll
	case store.CallInspect:
		return inspect
	default:
		return latency.Of(call.Op)
	}
}

// causeOf returns the cause of a failure: one of few, whatever the text of the error.
func causeOf(call store.Call) string {
	if call.Cause == store.CauseRejection || call.Cause == store.CauseUnready {
		text := " " + store.WithoutKeys(call.Err)
		for _, code := range answers {
			if strings.Contains(text, " "+code) {
				return strings.ToLower(code)
			}
		}
	}
	return causeNames[call.Cause]
}

// collect collects the calls.
func (c *engineCalls) collect(ch chan<- prometheus.Metric) {
	for o := range c.durations {
		histogram(ch, callSeconds, &c.durations[o], operationName(latency.Operation(o)))
	}
	for cause, n := range c.failures {
		count(ch, callFailures, n.Load(), cause)
	}
}

func operationName(o latency.Operation) string {
	switch o {
	case takeMany:
		return "take_many"
	case inspect:
		return "inspect"
	}
	return o.String()
}

// collectBreaker collects the state of the circuits of a store.
func collectBreaker(ch chan<- prometheus.Metric, b *store.Breaker, s store.Counts) {
	broken := int64(0)
	for _, state := range b.States() {
		if state.Position != store.Closed {
			broken++
		}
	}
	gauge(ch, circuitsOpen, broken)
	count(ch, circuitOpenings, s.Opened)
	count(ch, callsRefused, s.Refused, "circuit_open")
	count(ch, callsRefused, s.Overflows, "too_many")
	gauge(ch, callsWaiting, s.Calls)
}

var (
	callSeconds     = desc("weir_store_call_seconds", "Duration of calls of the engine, failed calls included.", "operation")
	callFailures    = desc("weir_store_call_failures_total", "Calls of the engine that failed, by cause.", "cause")
	callsRefused    = desc("weir_store_calls_refused_total", "Calls that were not sent to the engine, because its circuit was open or too many calls waited.", "reason")
	callsWaiting    = desc("weir_store_calls_waiting", "Calls that wait for the engine now.")
	circuitsOpen    = desc("weir_store_circuits_open", "Nodes of the engine whose circuit is open now: calls are refused until a probe succeeds.")
	circuitOpenings = desc("weir_store_circuit_openings_total", "Times that a circuit opened.")
)
