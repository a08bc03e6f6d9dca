package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// limitsChange is pitfall S18 for any two algorithms: what was used under one limit is used under the next, in units, at most its
// capacity, and a look or a denial under another limit costs nothing.
func limitsChange(k *check) {
	s := k.trusting()
	first := k.bindNamed(s, pairs)
	k.each(len(first), func(i int) {
		random := k.random("pairs", i)
		for j, other := range first {
			if i == j || testing.Short() && random.IntN(3) > 0 {
				continue
			}
			b := first[i]
			key := fmt.Sprint("key ", j)
			b.change(b.another(s, other.limit.String()), key)
			b.toAndFro(b.another(s, other.limit.String()), key+" to and fro")
		}
	})
}

// change takes under one limit and the other in turn.
func (b *bound) change(other *bound, key string) {
	s := b.script(key)
	period := min(b.limit.Period, other.limit.Period)
	used := b.limit.Capacity() - b.limit.Capacity()/3
	s.follow(take(used, 0))
	s.bound = other
	v := s.follow(peek(0))
	left := max(0, other.limit.Capacity()-used)
	s.demand(v.Remaining == left, fmt.Sprintf("%d of the new limit's are used", used))
	s.follow(take(never, 0)) // which writes what the limit is
	v = s.follow(take(1, 0))
	s.demand(v.Granted == -1 == (left == 0), fmt.Sprintf("%d were left to take 1 from", left))
	s.follow(take(1, period/3), peek(period/2), refund(1, period/2), takeUpTo(2, period))
	s.bound = b
	s.follow(peek(period), take(1, period), takeUpTo(never, period), take(1, period+s.interval()), peek(3*period))
	s.bound = other
	s.follow(step{op: algorithm.Op{Kind: algorithm.Reset}, after: 3 * period}, take(1, 3*period))
}

// toAndFro changes the limit with every request: at one instant no more passes than the larger capacity.
func (b *bound) toAndFro(other *bound, key string) {
	s := b.script(key)
	total := int64(0)
	most := max(b.limit.Capacity(), other.limit.Capacity())
	for i := range 2*most + 6 {
		if s.bound = b; i%2 == 1 {
			s.bound = other
		}
		total += max(0, s.follow(take(1, 0)).Granted)
	}
	s.demand(total == most, fmt.Sprintf("%d units were granted at one instant, under limits of %d and %d", total, b.limit.Capacity(), other.limit.Capacity()))
}

// changeRaces is pitfall S18 while the change spreads: callers have one limit or the other, from several
// stores and processes. In the end the larger limit is used up.
func changeRaces(k *check) {
	k.byBothClocks(slow, func(o Options, stores []store.Store, i int, limit algorithm.Limit) {
		other := algorithm.MustParseLimit(slower[i%len(slower)])
		if k.refused(other) != "" || limit.Strict {
			return
		}
		larger, name := limit, k.name()
		if other.Capacity() > limit.Capacity() {
			larger = other
		}
		r := k.raceFor(o, store.Spec{Limit: limit, Name: name}, store.Spec{Limit: other, Name: name})
		on := stores
		if k.shared() && !testing.Short() {
			on = nil
		}
		got := k.race(r, requests, on...)
		b := k.bindSpec(stores[0], store.Spec{Limit: larger, Name: name})
		rest := max(0, b.do(r.Key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: never}, r.Now).Granted)
		if got.Error != "" || got.Granted+rest != larger.Capacity() {
			k.Fatalf("%v and %v, one name, trusting their time: %v: %d were admitted in a race, and then %d more; want %d in all; errors: %.500s",
				limit, other, o.TrustClientTime, got.Granted, rest, larger.Capacity(), got.Error)
		}
	})
}

// slower are limits of smaller capacities.
var slower = []string{"15/720h", "fixed-window 10/720h", "sliding-log 12/720h", "concurrent 9 lease=720h", "exponential 14/720h"}

// changesOutlive checks that a record lives as long as its own limit has it, whatever other limits deny meanwhile.
func changesOutlive(k *check) {
	s := k.asking()
	high := k.mustBind(s, "sliding-log 20/4s")
	low := high.another(s, "fixed-window 2/200ms")
	high.take("key", 20, store.OwnClock)
	low.take("key", 1, store.OwnClock)
	var v algorithm.Verdict
	began := time.Now()
	high.eventually("the lower limit would be fresh", func() bool {
		v = high.peek("key", store.OwnClock)
		return v.Remaining > 0 || v.Reset < 3500*time.Millisecond
	})
	if took := time.Since(began); v.Remaining > 0 && took < 3*time.Second { // otherwise the machine is too busy
		k.Fatalf("%v, after a denial of %v: %s; units are forgotten", high.limit, low.limit, show(v))
	}
}

// leasesChange changes the length of leases while places are held: a Renew and a Cancel find each
// place by its end, under the first limit and under the next ones.
func leasesChange(k *check) {
	store := k.trusting()
	all := k.bindNamed(store, []string{"concurrent 3 lease=1s", "concurrent 3 lease=5s", "concurrent 3 lease=1m"})
	k.each(len(all), func(i int) {
		for j, other := range all {
			b := all[i]
			if i == j {
				continue
			}
			other, s := b.another(store, other.limit.String()), b.script(fmt.Sprint("key ", j))
			of := func(kind algorithm.Kind, end, after time.Duration) step {
				return step{algorithm.Op{Kind: kind, Cost: 1, End: start + int64(end)}, after}
			}
			end, at := b.limit.Period, time.Millisecond
			s.follow(take(1, 0))
			s.bound = other
			otherEnd := at + s.follow(take(1, at)).Reset
			s.bound, at = b, at+time.Millisecond
			end = at + s.follow(of(algorithm.Renew, end, at)).Reset
			s.bound, at = other, at+time.Millisecond
			otherEnd = at + s.follow(of(algorithm.Renew, otherEnd, at)).Reset
			s.bound, at = b, at+time.Millisecond
			v := s.follow(of(algorithm.Cancel, end, at))
			s.demand(v.Remaining == 2, "one of two places is released")
			s.bound = other
			v = s.follow(take(1, at), of(algorithm.Cancel, otherEnd, at))
			s.demand(v.Granted == 1 && v.Remaining == 2, "the other place is released")
			s.follow(peek(2*time.Second), take(1, 6*time.Second), takeUpTo(never, 2*time.Minute))
		}
	})
}
