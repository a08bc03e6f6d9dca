package storetest

import (
	"fmt"
	"slices"
	"sync"
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
	for _, o := range []Options{{}, {TrustClientTime: true}} {
		stores := k.rivals(o)
		for _, c := range []struct {
			limits         []string
			keys, requests int
		}{
			{tight, hotKeys, 30}, {roomy, 1, requests},
		} {
			for i, text := range c.limits {
				limit := algorithm.MustParseLimit(text)
				if k.refused(limit) != "" || omits(i, o) {
					continue
				}
				spec := store.Spec{Limit: limit}
				if i%2 == 0 != o.TrustClientTime { // each limit with a name, and without one
					spec.Name = k.name()
				}
				r := k.raceFor(o, spec)
				keys := c.keys
				if testing.Short() {
					keys = 1
				}
				k.together(keys, func(i int) {
					r := r
					r.Key = fmt.Sprint(r.Key, i)
					r.Requests = c.requests / len(stores)
					k.settle(stores[0], r, int64(r.Requests*len(stores)), r.runOn(stores))
				})
			}
		}
	}
}

// raceFor is a race for units, one by one, of a key of its own.
func (k *check) raceFor(o Options, spec ...store.Spec) race {
	r := race{Options: o, Specs: spec, Key: k.name() + " hot", Op: algorithm.Op{Cost: 1}, Now: store.OwnClock}
	if o.TrustClientTime {
		r.Now = start
	}
	return r
}

// runOn runs the race on each of the stores at the same time.
func (r race) runOn(stores []store.Store) (all outcome) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			o := r.run(s)
			mu.Lock()
			defer mu.Unlock()
			all.Granted += o.Granted
			all.Error += o.Error
		})
	}
	wg.Wait()
	return all
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
