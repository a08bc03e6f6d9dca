package redis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A call on a long log looks at a few of its entries, not at all: a log of 20,000 takes no more commands than
// bisection needs, whatever the operation, and is as exact as a short one.
func TestLongLog(t *testing.T) {
	const entries = 20_000
	s := open(t, redis.Options{TrustClientTime: true})
	b := bind(t, s, t.Name(), "sliding-log 20000/1h")
	many, program := b.(store.Batcher), b.(store.Inspector).Program()
	now := int64(1_700_000_000_000_000)
	state := []int64{}
	for i := range int64(entries) { // entries of 1 unit, 100ms apart, and every third of 0
		if i%3 > 0 {
			state, _ = program.Apply(state, algorithm.Op{Cost: 1}, now+i*100_000)
			if _, err := many.TakeMany(t.Context(), []store.KeyCost{{Key: "key", Cost: 1}}, (now+i*100_000)*1000, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := raw(t, server(t).Addr())
	end := now + entries*100_000
	hour := time.Hour.Microseconds()
	for _, step := range []struct {
		op  algorithm.Op
		now int64
	}{
		{algorithm.Op{Cost: 9000}, end},
		{algorithm.Op{Cost: 10_000}, end},
		{algorithm.Op{Kind: algorithm.Refund, Cost: 3000}, end},
		{algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: end - 700_000 + hour}, end},
		{algorithm.Op{Kind: algorithm.Refund, Cost: 7000}, end},
		{algorithm.Op{Cost: 20_000}, end + 1},
		{algorithm.Op{}, end + hour - 900_000_000},
		{algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 20_000}, end + hour - 900_000_000},
		{algorithm.Op{Cost: 1}, end + hour - 900_000_000},
	} {
		before := calls(t, c, "lindex")
		at := step.now
		op := step.op
		op.End *= 1000
		got, err := b.Do(t.Context(), "key", op, at*1000)
		var want algorithm.Result
		state, want = program.Apply(state, step.op, at)
		if err != nil || got != want.Verdict() {
			t.Errorf("%+v: %+v, %v, want %+v", step.op, got, err, want.Verdict())
		}
		if n := calls(t, c, "lindex") - before; n > 200 {
			t.Errorf("%+v reads %d elements", step.op, n)
		}
		kept, _, err := b.(store.Inspector).Inspect(t.Context(), "key", at*1000)
		if err != nil || !slices.Equal(kept, state) {
			t.Errorf("%+v leaves %d words, want %d, %v", step.op, len(kept), len(state), err)
		}
	}
}
