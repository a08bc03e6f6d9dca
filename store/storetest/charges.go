package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// hotKeys is how many keys of a limit are raced for at one time: a fault in how a key begins has one chance for each.
const hotKeys = 5

// exactlyCharged races from several stores for keys with hardly any room, where nearly all are denied, and for keys with room for all.
// What was charged must be what was admitted.
func exactlyCharged(k *check) {
	for _, c := range []struct {
		limits         []string
		keys, requests int
	}{
		{tight, hotKeys, 30}, {roomy, 1, requests},
	} {
		keys := c.keys
		if testing.Short() {
			keys = 1
		}
		k.byBothClocks(c.limits, func(o Options, stores []store.Store, i int, limit algorithm.Limit) {
			spec := store.Spec{Limit: limit}
			if i%2 == 0 != o.TrustClientTime { // each limit with a name, and without one
				spec.Name = k.name()
			}
			r := k.raceFor(o, spec)
			each := c.requests / len(stores) * len(stores)
			k.together(keys, func(i int) {
				r := r
				r.Key = fmt.Sprint(r.Key, i)
				k.settle(stores[0], r, int64(each), k.race(r, each, stores...))
			})
		})
	}
}

// exactInProcess is pitfall S3 within one process: however many ask at once, the capacity is admitted, to the unit.
func exactInProcess(k *check) { exact(k, false) }

// exactAcrossProcesses is pitfall S3: four processes share one limit.
func exactAcrossProcesses(k *check) {
	if !k.shared() {
		k.Skip("the store is not shared by processes (Harness.Process is empty)")
	}
	exact(k, true)
}

const (
	requests = 200 // at one time
	rounds   = 2
)

// exact races for the capacity of a key under every algorithm.
func exact(k *check, across bool) {
	again := rounds
	if testing.Short() {
		again = 1
	}
	k.byBothClocks(slow, func(o Options, stores []store.Store, _ int, limit algorithm.Limit) {
		on := stores[:1]
		if across {
			on = nil
		}
		for i := range again {
			spec := store.Spec{Limit: limit}
			if i%2 == 0 {
				spec.Name = k.name()
			}
			r := k.raceFor(o, spec)
			k.settle(stores[0], r, requests, k.race(r, requests, on...))
		}
	})
}

// raceFor is a race for units, one by one, of a key of its own.
func (k *check) raceFor(o Options, spec ...store.Spec) race {
	r := race{Options: o, Specs: spec, Key: k.name() + " hot", Op: algorithm.Op{Cost: 1}, Now: store.OwnClock}
	if o.TrustClientTime {
		r.Now = start
	}
	return r
}

// settle holds what came of a race to what the program says of as many requests one after another: what was admitted, what remains, and what
// remains when one unit is given back. That unit shows what was charged below nothing.
func (k *check) settle(s store.Store, r race, requests int64, got outcome) {
	k.Helper()
	b := k.bindSpec(s, r.Specs[0])
	if want := min(requests, b.limit.Capacity()); got.Error != "" || got.Granted != want {
		k.Fatalf("%v: %d requests at once, trusting their time: %v: admitted %d, want %d; errors: %.500s",
			b.limit, requests, r.Options.TrustClientTime, got.Granted, want, got.Error)
	}
	now := r.Now
	if now == store.OwnClock {
		now = time.Now().UnixNano()
	}
	ops := slices.Repeat([]algorithm.Op{r.Op}, int(requests))
	for _, op := range []algorithm.Op{{}, {Kind: algorithm.Refund, Cost: 1}} {
		ops = append(ops, op)
		v, want := b.do(r.Key, op, r.Now), b.expect(now, ops...)
		if v.Remaining != want.Remaining || r.Options.TrustClientTime && v != want {
			k.Fatalf("%v: after %d requests at once, of which %d were admitted, trusting their time: %v: %s is %s, want %s: something else was charged",
				b.limit, requests, got.Granted, r.Options.TrustClientTime, describe(op), show(v), show(want))
		}
	}
}
