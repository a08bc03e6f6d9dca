package storetest

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

const (
	requests = 200 // at one time
	rounds   = 2
)

// exactInProcess is pitfall S3 within one process: however many ask at once, the capacity is admitted, to the unit.
func exactInProcess(k *check) {
	exact(k, func(s store.Store, r race) outcome {
		r.Requests = requests
		return r.run(s)
	})
}

// exactAcrossProcesses is pitfall S3: four processes share one limit.
func exactAcrossProcesses(k *check) {
	if !k.shared() {
		k.Skip("the store is not shared by processes (Harness.Process is empty)")
	}
	exact(k, func(_ store.Store, r race) outcome {
		r.Requests = requests / processes
		all, err := k.crew.race(r)
		if err != nil {
			k.Fatalf("%v", err)
		}
		return all
	})
}

// exact races for the capacity of a key under every algorithm, by the caller's time and by the engine's.
func exact(k *check, run func(store.Store, race) outcome) {
	again := rounds
	if testing.Short() {
		again = 1
	}
	for _, o := range []Options{{}, {TrustClientTime: true}} {
		s := k.harness.Open(k.TB, o)
		for i, text := range slow {
			limit := algorithm.MustParseLimit(text)
			if k.refused(limit) != "" || omits(i, o) {
				continue
			}
			for i := range again {
				spec := store.Spec{Limit: limit}
				if i%2 == 0 {
					spec.Name = k.name()
				}
				r := k.raceFor(o, spec)
				k.settle(s, r, requests, run(s, r))
			}
		}
	}
}
