package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// clientTime holds a store that is a Timekeeper to its word.
func clientTime(k *check) {
	trusting, isOne := k.trusting().(store.Timekeeper)
	if !isOne {
		k.Skip("the store is no store.Timekeeper: it lets callers tell the time")
	}
	if !trusting.TrustsClientTime() {
		k.Fatalf("a store that is told to trust the caller's time says that it does not")
	}
	s := k.asking()
	if s.(store.Timekeeper).TrustsClientTime() {
		k.Fatalf("a store that is not told to trust the caller's time says that it does")
	}
	ctx := context.Background()
	for _, b := range k.bindAll(s, slow) {
		for _, op := range []algorithm.Op{{Cost: 1}, {}, {Kind: algorithm.TakeUpTo, Cost: 1}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Reset}} {
			for _, now := range []int64{start, 0, time.Now().UnixNano()} {
				if _, err := b.ask(ctx, "key", op, now); !errors.Is(err, store.ErrClientTime) {
					k.Fatalf("%v: %s at the caller's time: error %v, want store.ErrClientTime", b.limit, describe(op), err)
				}
			}
		}
		if v := b.peek("key", store.OwnClock); v.Remaining != b.limit.Capacity() {
			k.Fatalf("%v: requests at the caller's time were charged: %s", b.limit, show(v))
		}
		if batcher, ok := b.binding.(store.Batcher); ok {
			if _, err := batcher.TakeMany(ctx, []store.KeyCost{{Key: b.tag + "key", Cost: 1}}, start, nil); !errors.Is(err, store.ErrClientTime) {
				k.Fatalf("%v: a batch at the caller's time: error %v, want store.ErrClientTime", b.limit, err)
			}
		}
		b.takeByOwnClock()
	}
}

// takeByOwnClock takes all of a slow limit.
func (b *bound) takeByOwnClock() {
	b.Helper()
	capacity := b.limit.Capacity()
	if v := b.take("own", capacity, store.OwnClock); v.Granted != capacity {
		b.Fatalf("%v: by the store's own clock a fresh key is granted %s, want %d", b.limit, show(v), capacity)
	}
	if v := b.take("own", 1, store.OwnClock); v.Granted != -1 {
		b.Fatalf("%v: by the store's own clock a key that is used up is granted %s", b.limit, show(v))
	}
}

// ownClock holds the store's own clock to the time of day, and to going on.
func ownClock(k *check) {
	s := k.asking()
	const far = time.Minute
	told := 0
	for _, b := range k.bindAll(s, slow) {
		b.takeByOwnClock()
		if clock, ok := b.binding.(store.Clock); ok {
			told++
			if off := time.Duration(time.Now().UnixNano() - clock.Now()); off.Abs() > far {
				k.Fatalf("%v: the store's clock is off by %v", b.limit, off)
			}
		}
		stamper, ok := b.binding.(store.Stamper)
		if !ok {
			continue
		}
		told++
		last := int64(0)
		for range 5 {
			_, at, err := stamper.DoStamped(k.Context(), b.tag+"stamped", algorithm.Op{Cost: 1}, store.OwnClock)
			if off := time.Duration(time.Now().UnixNano() - at); err != nil || off.Abs() > far || at < last {
				k.Fatalf("%v: an operation took effect at %d, which is %v ago; the one before at %d; error %v", b.limit, at, off, last, err)
			}
			last = at
		}
	}
	if told == 0 {
		k.Logf("the store has neither store.Clock nor store.Stamper")
	}
}

// cancelledContext is pitfall S20.
func cancelledContext(k *check) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	all := k.bindAll(k.trusting(), slow)
	k.each(len(all), func(i int) {
		b := all[i]
		used := int64(0)
		for n := range 5 {
			v, err := b.ask(ctx, "key", algorithm.Op{Cost: 1}, start)
			if err == nil {
				used += max(0, v.Granted)
			} else if !errors.Is(err, context.Canceled) {
				k.Fatalf("%v: with a cancelled context, request %d: error %v, want one that is context.Canceled", b.limit, n, err)
			}
		}
		want := b.limit.Capacity()
		if used > 0 {
			want = b.expect(start, algorithm.Op{Cost: used}).Remaining
		}
		if v := b.peek("key", start); v.Remaining != want {
			k.Fatalf("%v: after 5 requests with a cancelled context, of which %d were granted, %d remain; want %d", b.limit, used, v.Remaining, want)
		}
	})
}

// refusals holds Bind to saying what is wrong with a limit.
func refusals(k *check) {
	s := k.trusting()
	for _, limit := range []algorithm.Limit{
		{}, {Count: 10}, {Period: time.Second}, {Count: -1, Period: time.Second}, {Count: 1, Period: -time.Second},
		{Count: 10, Period: time.Second, Burst: -1}, {Count: 10, Period: time.Second, Queue: 3}, {Count: 10, Period: time.Second, Cells: 3},
		{Count: 10, Period: time.Second, Strict: true}, {Algorithm: "bucket", Count: 10, Period: time.Second},
		{Algorithm: algorithm.SlidingBuckets, Count: 10, Period: time.Second, Cells: 1 << 40},
		{Algorithm: algorithm.FixedWindow, Count: 10, Period: time.Second, Burst: 5},
		{Count: 1, Period: 1 << 62, Burst: 1 << 62}, {Algorithm: algorithm.SlidingLog, Count: 1 << 40, Period: time.Hour},
	} {
		for _, debt := range []bool{false, true} {
			k.mustRefuse(s, store.Spec{Limit: limit, TimeDebt: debt})
		}
	}
	for _, a := range algorithm.All() { // a period that is no whole number of ticks
		limit := algorithm.Limit{Algorithm: a, Count: 3, Period: 10*time.Second + 1}
		if _, err := algorithm.Compile(limit, k.tick); err != nil {
			k.mustRefuse(s, store.Spec{Limit: limit})
		}
	}
	for _, text := range limits {
		limit := algorithm.MustParseLimit(text)
		if why := k.refused(limit); why != "" {
			if _, err := s.Bind(store.Spec{Limit: limit}); err == nil {
				k.Fatalf("%v is accepted, and the harness says that it is refused: %s", limit, why)
			}
			k.Logf("%v is refused: %s", limit, why)
		}
	}
}

func (k *check) mustRefuse(s store.Store, spec store.Spec) {
	k.Helper()
	b, err := s.Bind(spec)
	text := fmt.Sprintf("%+v", spec)
	var wrong *algorithm.LimitError
	switch {
	case err == nil:
		k.Fatalf("%s is accepted: %v", text, b)
	case !errors.As(err, &wrong):
		k.Fatalf("%s is refused with %T %v, want an *algorithm.LimitError", text, err, err)
	case wrong.Field == "" || wrong.Accept == "":
		k.Fatalf("%s is refused with %+v, which names no field, or not what is accepted", text, wrong)
	}
}
