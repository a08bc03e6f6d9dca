package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// renewTakesAnew renews leases: one that is alive, one that is over, one twice, more than there are.
func renewTakesAnew(k *check) {
	k.scripts(limits, func(s *script) {
		period := s.limit.Period
		renew := func(cost int64, taken, after time.Duration) step {
			return step{algorithm.Op{Kind: algorithm.Renew, Cost: cost, End: start + int64(taken.Truncate(time.Microsecond)+period)}, after}
		}
		s.follow(take(1, 0), renew(1, 0, period/2), peek(period/2), renew(1, 0, period-time.Microsecond), renew(1, period/2, period))
		v := s.follow(takeUpTo(never, period))
		if s.limit.Algorithm == algorithm.Concurrent {
			s.demand(v.Granted == s.limit.Count-2, "two leases are held, of which one was renewed again")
		}
		s.follow(renew(1, period, period+1000), renew(s.limit.Capacity()+1, period, period), renew(0, period, period), renew(2, period, period))
		s.follow(peek(period+period/2), renew(1, period/2, 3*period), renew(1, 0, 3*period), peek(3*period))
	})
}

// reservationsSettle settles reservations at less, at more, at nothing, twice and too late.
func reservationsSettle(k *check) {
	k.scriptsOfNames(limits, func(s *script) {
		capacity, life, end := s.limit.Capacity(), s.limit.Period, 2*s.limit.Period
		v := s.follow(reserve(1, capacity, life, 0))
		s.demand(v.Granted == capacity && v.Remaining == 0, "all there is has been reserved")
		v = s.follow(take(1, 0), reserve(1, capacity, life, 0))
		s.demand(v.Granted == capacity, "what is reserved is granted again to who had no answer")
		v = s.follow(commit(1, 0, 0))
		s.demand(v.Granted == 0, "a commit at nothing gives all back")
		v = s.follow(commit(1, 0, 0))
		s.demand(v.Granted == -1 && v.Wait == algorithm.Never, "it was settled")
		s.follow(reserve(2, 1, life, 0), reserve(-3, 0, 2*life, 0), reserve(4, capacity+1, life, 0), reserve(5, never, life, 0), peek(0))
		s.follow(commit(2, 2, life/2), commit(-3, 1, life/2), commit(4, 1, life/2), peek(life/2))
		s.follow(reserve(6, 1, life/4, life), take(1, life), reserve(7, 1, life/2, life))
		v = s.follow(commit(6, 1, life+life/4))
		s.demand(v.Granted == -1, "its life was over")
		s.follow(commit(7, 0, life+life/4), take(1, life+life/4), peek(end))
		s.follow(reserve(8, 1, life, end), commit(8, 3*capacity, end)) // more than there is
		s.follow(take(1, end), takeUpTo(2, end+life/2), refund(1, end+life/2), take(1, end+life), peek(end+2*life), take(1, end+10*life))
		s.follow(reserve(9, 1, life, end+10*life), step{algorithm.Op{Kind: algorithm.Reset}, end + 10*life}, commit(9, 1, end+10*life))
	})
	if testing.Short() {
		return
	}
	b := k.bind(k.trusting(), "fixed-window 5000/1h")
	if b == nil {
		return
	}
	s := b.script("many")
	for id := range int64(algorithm.MaxHolds) {
		s.follow(reserve(id+1, 1, time.Minute+time.Duration(id)*time.Second, 0))
	}
	v := s.follow(reserve(-1, 1, time.Minute, 0))
	s.demand(v.Granted == -1 && v.Wait == time.Minute, "there are too many reservations until the first is over")
	s.follow(commit(500, 1, 0), reserve(-1, 1, time.Minute, 0))
}

// reservationsRenewed renews reservations, and commits late with and without one.
func reservationsRenewed(k *check) {
	k.scriptsOfNames(limits, func(s *script) {
		capacity, life := s.limit.Capacity(), s.limit.Period
		s.follow(reserve(1, capacity, life, 0))
		v := s.follow(reserve(1, 1, life, life/2), reserve(1, 1, life/8, life-time.Microsecond), commit(1, capacity, life+life/4))
		s.demand(v.Granted == capacity, "a reservation that was renewed outlives its first life")
		s.follow(reserve(2, 1, life/4, 4*life), peek(4*life+life/4))
		v = s.follow(commitLate(2, 1, 4*life+life/2))
		s.demand(v.Granted == 1, "a late commit is charged")
		v = s.follow(commitLate(3, 0, 4*life+life/2), commitLate(4, 2*capacity, 4*life+life/2))
		s.demand(v.Granted == 2*capacity && v.Remaining == 0, "all of a late commit is charged")
		v = s.follow(reserve(5, 1, life, 4*life+life/2))
		s.demand(v.Granted == -1, "nothing passes while there is debt")
		s.follow(take(1, 5*life), peek(6*life), peek(8*life), take(1, 9*life))
		s.follow(reserve(6, 1, life, 20*life), commitLate(6, 1, 20*life), commit(6, 1, 20*life), peek(20*life))
	})
}

// reservationsKeepThroughChanges settles under one limit what was reserved under another.
func reservationsKeepThroughChanges(k *check) {
	s := k.trusting()
	first := k.bindNamed(s, pairs)
	k.each(len(first), func(i int) {
		b := first[i]
		for j := range 3 {
			other := b.another(s, first[(i+1+5*j)%len(first)].limit.String())
			t := b.script(fmt.Sprint("key ", j))
			life := 2 * max(b.limit.Period, other.limit.Period)
			t.follow(reserve(1, 2, life, 0), reserve(2, 1, life, 0), take(1, 0))
			t.bound = other
			t.follow(peek(0), commit(1, 1, 0), take(1, other.limit.Period/3), reserve(3, 1, life, other.limit.Period/2))
			t.bound = b
			t.follow(commit(2, 2, life/2), commit(3, 0, life/2), takeUpTo(never, life/2), peek(life), take(1, 2*life))
		}
	})
}

// settledOnce races to settle a reservation, and to make one: it is done once.
func settledOnce(k *check) {
	stores := k.rivals(Options{TrustClientTime: true})
	for i, text := range []string{"25/720h", "fixed-window 25/720h", "sliding-log 25/720h", "concurrent 25 lease=720h", "25" + year()} {
		b := k.bind(stores[0], text)
		if b == nil {
			continue
		}
		r := k.raceFor(Options{TrustClientTime: true}, b.spec)
		r.Op = algorithm.Op{Kind: algorithm.Reserve, Cost: 5, ID: 1 << 40, Life: int64(time.Hour)}
		run := func() outcome {
			if !k.shared() || i%2 == 0 {
				return k.race(r, 10*len(stores), stores...)
			}
			return k.race(r, 10*processes)
		}
		if got, left := run(), b.peek(r.Key, r.Now).Remaining; got.Error != "" || left != 20 {
			k.Fatalf("%v: after many asked for one reservation of 5, %d of 25 remain, want 20; errors: %.500s", b.limit, left, got.Error)
		}
		r.Op = algorithm.Op{Kind: algorithm.Commit, Cost: 3, ID: r.Op.ID}
		if got, left := run(), b.peek(r.Key, r.Now).Remaining; got.Error != "" || got.Granted != 3 || left != 22 {
			k.Fatalf("%v: many settled one reservation at 3 of 5: %d units in all, and %d of 25 remain; want 3, as one does it, and 22; errors: %.500s",
				b.limit, got.Granted, left, got.Error)
		}
	}
}

// reservationsEnd waits until reservations that nobody settles are given back, by the store's own clock, and settles one that has outlived
// all else that is known of its key.
func reservationsEnd(k *check) {
	s := k.asking()
	all := k.bindNamed(s, []string{"25/720h", "fixed-window 25/720h", "sliding-log 25/720h", "25" + year()})
	const life = 300 * time.Millisecond
	var wg sync.WaitGroup
	wg.Go(func() {
		defer k.stopped()
		k.each(len(all), func(i int) {
			b := all[i]
			op := algorithm.Op{Kind: algorithm.Reserve, Cost: b.limit.Capacity(), ID: 7, Life: int64(life)}
			asked := time.Now()
			if v := b.do("key", op, store.OwnClock); v.Granted != op.Cost {
				b.Fatalf("%v: all of a fresh key could not be reserved: %s", b.limit, show(v))
			}
			b.eventually("what was reserved is given back", func() bool {
				v := b.peek("key", store.OwnClock)
				if early := life - time.Since(asked); v.Remaining > 0 && early > drift {
					b.Fatalf("%v: what was reserved was given back %v too early", b.limit, early)
				}
				return v.Remaining > 0
			})
			if v := b.do("key", algorithm.Op{Kind: algorithm.Commit, ID: 7}, store.OwnClock); v.Granted != -1 {
				b.Fatalf("%v: a reservation that was over could be settled: %s", b.limit, show(v))
			}
		})
	})
	k.each(len(quick), func(i int) {
		b := k.bind(s, quick[i])
		if b == nil {
			return
		}
		b.do("key", algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 7, Life: int64(time.Hour)}, store.OwnClock)
		b.eventually("the units of a reservation have come back", func() bool { return b.peek("key", store.OwnClock).Reset == 0 })
		if v := b.do("key", algorithm.Op{Kind: algorithm.Commit, ID: 7, Cost: 1}, store.OwnClock); v.Granted != 1 {
			b.Fatalf("%v: a reservation could not be settled an hour before it is over: %s", b.limit, show(v))
		}
	})
	wg.Wait()
}

// reservationsHaveNames holds bindings that keep no accounts to refusing reservations.
func reservationsHaveNames(k *check) {
	s := k.trusting()
	for _, text := range pairs {
		all := []*bound{k.bindUnnamed(s, text)}
		if all[0] == nil {
			continue
		}
		if _, err := algorithm.CompileShared(all[0].limit, k.tick); err == nil {
			all = append(all, k.bindSpec(s, store.Spec{Limit: all[0].limit, Name: k.name(), TimeDebt: true}))
		}
		for _, b := range all {
			for _, kind := range []algorithm.Kind{algorithm.Reserve, algorithm.Commit} {
				op := algorithm.Op{Kind: kind, Cost: 1, ID: 7, Life: int64(time.Minute)}
				if v, err := b.ask(k.Context(), "key", op, start); !errors.Is(err, store.ErrUnnamed) {
					k.Fatalf("%v, which keeps no accounts: %s is %s, error %v; want store.ErrUnnamed", b.limit, describe(op), show(v), err)
				}
			}
			b.wantf(b.peek("key", start), b.expect(start), "a look after reservations that were refused")
		}
	}
}
