package redis_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A hybrid that is smooth is fresh at the end of its debt to the fraction of a microsecond.
func TestHybridAtTheEndOfItsDebt(t *testing.T) {
	const text, now = "hybrid 7/10s", int64(1_700_000_000_000_000)
	s := open(t, redis.Options{TrustClientTime: true})
	c, b := raw(t, server(t).Addr()), bind(t, s, t.Name(), text)
	program := b.(store.Inspector).Program()
	for _, state := range [][]int64{{1, now, 0}, {1, now, 3}, {1, now - 1, 6}, {1, now + 1, 0}} {
		for _, op := range []algorithm.Op{{Cost: 1}, {Cost: 7}, {Kind: algorithm.TakeUpTo, Cost: 7}, {Kind: algorithm.Refund, Cost: 1}} {
			ask(t, c, "SET", nameOf(t, t.Name(), text, "key"), text+"|"+strings.Trim(strings.ReplaceAll(fmt.Sprint(state), " ", ":"), "[]"))
			got, err := b.Do(t.Context(), "key", op, now*1000)
			after, want := program.Apply(slices.Clone(state), op, now)
			if err != nil || got != want.Verdict() {
				t.Errorf("%+v in %v: %+v, %v, want %+v", op, state, got, err, want.Verdict())
			}
			kept, at, err := b.(store.Inspector).Inspect(t.Context(), "key", now*1000)
			if err != nil || !slices.Equal(kept, after) && (!program.Fresh(after, at) || !program.Fresh(kept, at)) {
				t.Errorf("%+v in %v leaves %v, %v, want %v", op, state, kept, err, after)
			}
		}
	}
}

// When its last entry is cancelled, a log lives until the one before it leaves the window.
func TestLifeOfALogWithoutItsLastEntry(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	c, b := raw(t, server(t).Addr()), bind(t, s, t.Name(), "sliding-log 10/1h")
	begin, minute := int64(1_700_000_000_000_000_000), int64(time.Minute)
	step := func(op algorithm.Op, now int64) algorithm.Verdict {
		v, err := b.Do(t.Context(), "key", op, now)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	step(algorithm.Op{Cost: 1}, begin)
	last := begin + 30*minute
	v := step(algorithm.Op{Cost: 1}, last)
	if v = step(algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: last + int64(v.Reset)}, begin+31*minute); v.Granted != 1 || v.Remaining != 9 {
		t.Fatalf("%+v", v)
	}
	life := time.Duration(number(t, c, "PTTL", nameOf(t, t.Name(), "sliding-log 10/1h", "key"))) * time.Millisecond
	if want := 24*time.Hour + 29*time.Minute; life > want+time.Second || life < want-time.Minute {
		t.Errorf("it lives for %v, want %v", life, want)
	}
}

// A server without memory refuses to take, also where a take forgets more than it adds, and then nothing has changed.
func TestNoMemory(t *testing.T) {
	server := testengine.Redis(t, "--maxmemory-policy", "noeviction")
	s := openURL(t, server.URL(), redis.Options{TrustClientTime: true})
	c := raw(t, server.Addr())
	begin, hour := int64(1_700_000_000_000_000_000), int64(time.Hour)
	for _, text := range limits {
		limit := algorithm.MustParseLimit(text)
		b := bind(t, s, t.Name(), text)
		name := nameOf(t, t.Name(), text, "key")
		for i := range int64(2) {
			if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, begin+i*int64(limit.Period)*2/3); err != nil {
				t.Fatal(err)
			}
		}
		dump, _ := ask(t, c, "DUMP", name).ToString()
		ask(t, c, "CONFIG", "SET", "maxmemory", "1")
		for _, now := range []int64{begin + int64(limit.Period)*5/4, begin + 1000*hour} {
			if v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, now); err == nil && v.Granted > 0 || err != nil && !strings.Contains(err.Error(), "OOM") {
				t.Errorf("%s: %+v, %v", text, v, err)
			}
		}
		if now, _ := ask(t, c, "DUMP", name).ToString(); now != dump {
			t.Errorf("%s: it was written over", text)
		}
		ask(t, c, "CONFIG", "SET", "maxmemory", "0")
	}
}

// Limits of the longest periods are exact at the ends of time.
func TestFarTimes(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	for _, text := range limits {
		limit := algorithm.MustParseLimit(text)
		if !limit.Strict {
			farTimes(t, s, limit)
		}
	}
	b := bind(t, s, t.Name(), "10/1h")
	for _, now := range []int64{algorithm.MaxTime + 1, -algorithm.MaxTime - 1} {
		if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, now); !errors.Is(err, store.ErrTime) {
			t.Errorf("at %d: %v", now, err)
		}
	}
}

func farTimes(t *testing.T, s *redis.Store, limit algorithm.Limit) {
	t.Helper()
	var b store.Binding
	var err error
	for limit.Period = 1 << 61 / 1000 * 1000; b == nil; limit.Period = limit.Period / 4000 * 1000 * 3 {
		if b, err = s.Bind(store.Spec{Limit: limit}); err != nil {
			b = nil
		}
	}
	program, capacity := b.(store.Inspector).Program(), limit.Capacity()
	for _, now := range []int64{algorithm.MaxTime / 1000, -algorithm.MaxTime / 1000} {
		var state []int64
		key := fmt.Sprint(now)
		for i, op := range []algorithm.Op{
			{Cost: 1}, {Kind: algorithm.TakeUpTo, Cost: capacity}, {Cost: 1}, {}, {Kind: algorithm.Refund, Cost: 1}, {Cost: 1}, {Kind: algorithm.Refund, Cost: capacity},
		} {
			got, err := b.Do(t.Context(), key, op, now*1000)
			var want algorithm.Result
			state, want = program.Apply(state, op, now)
			if err != nil || got != want.Verdict() {
				t.Errorf("%v, step %d at %d: %+v, %v, want %+v", program.Limit(), i, now, got, err, want.Verdict())
				break
			}
		}
	}
}
