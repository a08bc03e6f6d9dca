package storetest

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

const never = math.MaxInt64

// peekWritesNothing is pitfall A7. It looks from later times too, also from one at which the key is fresh: what
// such a look had written would be there when time is back.
func peekWritesNothing(k *check) {
	k.scripts(limits, func(s *script) {
		period, capacity := s.limit.Period, s.limit.Capacity()
		s.follow(peek(period), peek(0), take(capacity, 0))
		s.follow(peek(0), peek(s.interval()), peek(period/2), peek(period), peek(0))
		s.follow(peek(1000*min(period, 14*24*time.Hour)), take(1, 0))
	})
}

// peekUnderContention is pitfall S19: those that look while others take have taken nothing in the end.
func peekUnderContention(k *check) {
	all := k.bindAll(k.trusting(), slow)
	const takers, lookers, times = 4, 4, 5
	for _, b := range all {
		var granted atomic.Int64
		k.together(takers+lookers, func(i int) {
			for range times {
				if i < lookers {
					b.peek("key", start)
				} else {
					granted.Add(max(0, b.take("key", 1, start).Granted))
				}
			}
		})
		want := min(takers*times, b.limit.Capacity())
		left := b.expect(start, algorithm.Op{Cost: want}).Remaining
		if v := b.peek("key", start); granted.Load() != want || v.Remaining != left {
			k.Fatalf("%v: after %d requests among as many peeks, %d were granted and %d remain; want %d and %d",
				b.limit, takers*times, granted.Load(), v.Remaining, want, left)
		}
	}
}

// denialIsFree is pitfall S4. Under strict, denied requests count: that is what it is for.
func denialIsFree(k *check) {
	k.scripts(limits, func(s *script) {
		if s.limit.Strict {
			return
		}
		capacity := s.limit.Capacity()
		v := s.follow(take(capacity-min(2, capacity-1), 0))
		left := v.Remaining
		for range 5 {
			v = s.follow(take(left+1, 0), take(capacity, time.Microsecond), take(capacity+1, 0))
			s.demand(v.Granted == -1 && v.Remaining == left, "a denial is charged")
		}
		if left > 0 {
			v = s.follow(take(left, 0))
			s.demand(v.Granted == left, "what remained is not granted after a denial")
		}
		s.follow(take(1, 0), take(1, s.interval()/2), take(1, 0), peek(0))
	})
}

// aboveCapacity is pitfalls A5 and A8.
func aboveCapacity(k *check) {
	k.scripts(limits, func(s *script) {
		if s.limit.Strict {
			return
		}
		capacity := s.limit.Capacity()
		for _, cost := range []int64{capacity + 1, 1 << 31, 1 << 53, 1<<53 + 1, 1 << 62, never} {
			v := s.follow(take(cost, 0))
			s.demand(v.Granted == -1 && v.Wait == algorithm.Never && v.Remaining == capacity, "it can never pass, and takes nothing")
		}
		s.follow(take(capacity-capacity/2, 0), take(capacity+1, 0), take(never, 0), peek(0), takeUpTo(never, 0), takeUpTo(never, 0))
	})
}

// refundIsBounded is pitfall S8.
func refundIsBounded(k *check) {
	k.scripts(limits, func(s *script) {
		capacity := s.limit.Capacity()
		half := capacity - capacity/2
		s.follow(refund(5, 0), take(half, 0), refund(half, 0), refund(half, 0), refund(never, 0), peek(0))
		v := s.follow(takeUpTo(never, 0))
		s.demand(v.Granted <= capacity, "more than the capacity is granted after refunds")
		s.follow(refund(1, 0), take(1, 0), take(1, 0), refund(0, 0), peek(s.limit.Period/3), refund(1<<53, s.limit.Period/3))
		v = s.follow(takeUpTo(never, s.limit.Period/3))
		s.demand(v.Granted <= capacity, "more than the capacity is granted after refunds")
	})
}

// takeUpToTakesWhatThereIs is pitfall A10.
func takeUpToTakesWhatThereIs(k *check) {
	k.scripts(limits, func(s *script) {
		capacity := s.limit.Capacity()
		v := s.follow(takeUpTo(1, 0))
		s.demand(v.Granted == 1, "one is not granted from a fresh key")
		s.follow(takeUpTo(0, 0), takeUpTo(capacity, 0), takeUpTo(1, 0), takeUpTo(capacity, s.interval()),
			takeUpTo(2, s.interval()+s.limit.Period/2), takeUpTo(never, 2*s.limit.Period), peek(2*s.limit.Period))
	})
}

// cancelGivesBackWhatWasTaken cancels takes of other times, in another order, one of them twice.
func cancelGivesBackWhatWasTaken(k *check) {
	k.scripts(limits, func(s *script) {
		var cancels []step
		at := func(i int) time.Duration { return time.Duration(i) * s.limit.Period / 3 }
		for i := range 4 {
			v := s.follow(take(1, at(i)))
			end := start + int64(at(i).Truncate(time.Microsecond)+v.Reset)
			cancels = append(cancels, step{algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end}, at(3)})
		}
		s.follow(cancels[3], cancels[1], cancels[1], cancels[0], peek(at(3)), takeUpTo(never, at(3)), cancels[2], peek(at(4)))
	})
}

// rewind is pitfall T1: of requests at two times in turn no more pass than the capacity at each, and what comes back
// between them. Where those at the later time only look, no more than the capacity passes.
func rewind(k *check) {
	all := k.bindAll(k.trusting(), limits)
	k.each(len(all), func(i int) {
		b := all[i]
		capacity, later := b.limit.Capacity(), 2*int64(b.limit.Period)
		b.alternate("looks", later, 0, capacity)
		b.alternate("takes", later, 1, 2*capacity+2*b.limit.Count)
	})
}

// alternate takes all that there is at the start of a key, and some at a later time, again and again.
func (b *bound) alternate(key string, later, cost, most int64) {
	b.Helper()
	var granted int64
	times := 30
	if testing.Short() {
		times = 10
	}
	for range times {
		granted += max(0, b.do(key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: b.limit.Capacity()}, start).Granted)
		granted += max(0, b.take(key, cost, start+later).Granted)
	}
	if granted > most {
		b.Fatalf("%v: %d units were granted at two times, %v apart, in turn, want at most %d", b.limit, granted, time.Duration(later), most)
	}
}

// resetIsLiteral is pitfall S11.
func resetIsLiteral(k *check) {
	b := k.mustBind(k.trusting(), "10/1h")
	others := []string{"a", "ab", "axxb", "a1b", "abc", "key", "[", "a[b", `\`, "?", "**", "%", "_", "b*"}
	patterns := []string{"*", "a?[b", "a*", "?", "[a-z]", `\*`, "a%", "%", "_", "a.*", "*b"}
	for _, key := range append(others, patterns...) {
		b.take(key, 1, start)
	}
	reset := map[string]bool{}
	for _, pattern := range patterns {
		b.wantf(b.do(pattern, algorithm.Op{Kind: algorithm.Reset}, start), b.expect(start), "reset of %q", pattern)
		reset[pattern] = true
		for _, key := range append(others, patterns...) {
			left := b.peek(key, start).Remaining
			if fresh := left == 10; fresh != reset[key] {
				k.Fatalf("after a reset of %q, %d of 10 remain to %q", pattern, left, key)
			}
		}
	}
	k.scripts(limits, func(s *script) {
		s.follow(take(s.limit.Capacity(), 0), step{op: algorithm.Op{Kind: algorithm.Reset}}, step{op: algorithm.Op{Kind: algorithm.Reset}}, peek(0),
			take(s.limit.Capacity(), 0))
	})
}

// inspectTells holds what an Inspector shows against verdicts.
func inspectTells(k *check) {
	s := k.trusting()
	for _, b := range k.bindAll(s, limits) {
		inspector, ok := b.binding.(store.Inspector)
		if !ok {
			k.Skip("the store has no store.Inspector")
		}
		if got, want := inspector.Program().Limit(), b.limit.Canonical(); got != want {
			k.Fatalf("%v: the program of the binding is of %v", want, got)
		}
		b.inspect(inspector, "fresh")
		b.take("key", 1, start)
		b.inspect(inspector, "key")
		b.take("key", b.limit.Capacity()-1, start)
		b.inspect(inspector, "key")
		if b.spec.Accounts() { // of another limit, as this one's program sees it
			other := b.another(s, "fixed-window 5/1h")
			other.inspectChanged("key")
			other.take("more", 3, start)
			b.inspectChanged("more")
		}
	}
}

// inspectChanged looks at the record of another limit: as much remains in the state as at a peek.
func (b *bound) inspectChanged(key string) {
	b.Helper()
	inspector := b.binding.(store.Inspector)
	state, at, err := inspector.Inspect(b.Context(), b.tag+key, start)
	if err != nil {
		b.Fatalf("%v: inspecting: %v", b.limit, err)
	}
	_, r := inspector.Program().Apply(state, algorithm.Op{}, at)
	if got := b.peek(key, start); got.Remaining != r.Remaining {
		b.Fatalf("%v: a peek has %s; the state %v of %q at %d has %d left", b.limit, show(got), state, key, at, r.Remaining)
	}
}

func (b *bound) inspect(inspector store.Inspector, key string) {
	b.Helper()
	for range 2 { // it changes nothing
		state, at, err := inspector.Inspect(b.Context(), b.tag+key, start)
		if err != nil {
			b.Fatalf("%v: inspecting: %v", b.limit, err)
		}
		_, r := inspector.Program().Apply(state, algorithm.Op{}, at)
		b.wantf(b.peek(key, start), r.Verdict(), "a peek, and the state %v of %q at %d", state, key, at)
	}
}
