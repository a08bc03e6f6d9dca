package storetest

import (
	"time"

	"github.com/weirlimit/weir/store"
)

const (
	lookEvery = 10 * time.Millisecond
	// drift is how much a clock may gain on another while a test runs.
	drift = 2 * time.Millisecond
	// waited is the longest time that a test waits for a key to be fresh.
	waited = 3 * time.Second
)

// patience is how long a test waits for an event: longer than any machine is busy.
var patience = 10 * time.Minute

// freshAgain is pitfalls S27 and A12: when a key's time is over, a look finds it full. No request has to come first.
func freshAgain(k *check) {
	untilFresh(k, func(*bound) {})
}

// debtOutlives is pitfall S17: a key is kept for as long as its last debt lasts, not its first.
func debtOutlives(k *check) {
	untilFresh(k, func(b *bound) { // waits for a part of the first debt to be paid
		first := b.take("key", 1, store.OwnClock)
		b.eventually("a second request passes, or half of the first debt is paid", func() bool {
			v := b.peek("key", store.OwnClock)
			return v.Reset <= first.Reset/2
		})
	})
}

// untilFresh drains a key of each limit by the store's own clock after before, and looks until it is full: not too early.
func untilFresh(k *check, before func(b *bound)) {
	s := k.asking()
	all := k.bindAll(s, quick)
	k.each(len(all), func(i int) {
		b := all[i]
		before(b)
		capacity := b.limit.Capacity()
		asked := time.Now()
		b.eventually("a request passes", func() bool {
			asked = time.Now()
			return b.take("key", 1, store.OwnClock).Granted == 1
		})
		debt := b.peek("key", store.OwnClock)
		if debt.Reset > waited {
			return // too long to wait for
		}
		// From asked on the debt was at least what a later look tells, less the time between.
		b.eventually("the key is fresh again", func() bool {
			v := b.peek("key", store.OwnClock)
			if early := debt.Reset - time.Since(asked); v.Reset == 0 && early > drift {
				b.Fatalf("%v: the key was fresh %v too early: its debt was %v", b.limit, early, debt.Reset)
			}
			return v.Reset == 0 && v.Remaining == capacity
		})
	})
}

// eventually looks again and again until what is waited for is there.
func (k *check) eventually(what string, there func() bool) {
	k.Helper()
	for until := time.Now().Add(patience); !there(); time.Sleep(lookEvery) {
		if time.Now().After(until) {
			k.Fatalf("within %v it did not happen that %s", patience, what)
		}
	}
}
