package redis_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// sent returns how many bytes the server has sent.
func sent(t testing.TB, c rueidis.Client) (n int) {
	t.Helper()
	text, err := ask(t, c, "INFO", "stats").ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		fmt.Sscanf(line, "total_net_output_bytes:%d", &n)
	}
	return n
}

// After the limit of a key with a long log has changed, a burst of requests does not move the log once for each: the script leaves the
// record alone for the first, and the store remembers that for the next.
func TestBurstOnAChangedLog(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{Timeout: patience})
	c := raw(t, server.Addr())
	entries, callers := 20_000, 400
	if testing.Short() {
		entries = 2_000
	}
	for i, change := range []struct {
		from, to string
		count    int
	}{
		{"sliding-log %d/720h", "sliding-log %d/720h", entries / 2},
		{"sliding-log %d/720h", "sliding-log %d/720h", entries * 2},
		{"concurrent %d lease=720h", "concurrent %d lease=720h", entries / 2},
		{"sliding-log %d/720h", "concurrent %d lease=720h", entries / 2},
	} {
		text := [2]string{fmt.Sprintf(change.from, entries), fmt.Sprintf(change.to, change.count)}
		name := fmt.Sprint("burst", i)
		b := named(t, s, name, text[:]...)
		beside := named(t, s, name+"beside", "100000/87600h")[0]
		fill(t, b[0], entries)
		size := entries * 24
		burst := func(what string, most int, request func(id int64) ([]int64, error)) {
			t.Helper()
			commands, bytes := calls(t, c, "evalsha"), sent(t, c)
			var wg sync.WaitGroup
			var mu sync.Mutex
			granted := make(map[string]int)
			for id := range callers {
				wg.Go(func() {
					got, err := request(int64(id + 1))
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Errorf("%q, %s: %v", text, what, err)
					}
					granted[fmt.Sprint(got)]++
				})
			}
			wg.Wait()
			commands, bytes = calls(t, c, "evalsha")-commands, sent(t, c)-bytes
			t.Logf("%q, %s: %d commands, %d bytes, %v", text, what, commands, bytes, granted)
			if commands > most || bytes > 20*(size+callers*100) {
				t.Errorf("%q, %s: %d commands and %d bytes for %d requests on a log of %d bytes", text, what, commands, bytes, callers, size)
			}
		}
		takes := func(int64) ([]int64, error) {
			v, err := b[1].Do(context.Background(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
			return []int64{v.Granted}, err
		}
		burst("just changed", callers+40, takes) // who comes before the first answer asks the script
		later := 40
		if change.count > entries {
			later = callers // a raised log is plain again, and the script's
		}
		burst("later", later, takes)
		burst("reserve", 40, func(id int64) ([]int64, error) {
			v, err := b[1].Do(context.Background(), "key", algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: 1, Life: int64(time.Hour)}, store.OwnClock)
			return []int64{v.Granted}, err
		})
		burst("with others", 40, func(int64) ([]int64, error) {
			parts := []store.Part{
				{Store: s, Binding: b[1], Limit: algorithm.MustParseLimit(text[1]), Name: name, Key: "key", Cost: 1},
				{Store: s, Binding: beside, Limit: algorithm.MustParseLimit("100000/87600h"), Name: name + "beside", Key: "key", Cost: 1},
			}
			outcomes, err := s.TakeAll(context.Background(), parts, store.OwnClock, nil)
			if err != nil {
				return nil, err
			}
			return []int64{outcomes[0].Granted, outcomes[1].Granted}, nil
		})
	}
}

// fill takes so many units, one at a time.
func fill(t testing.TB, b store.Binding, units int) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range 100 {
		wg.Go(func() {
			for range (units + 99 - g) / 100 {
				if v, err := b.Do(context.Background(), "key", algorithm.Op{Cost: 1}, store.OwnClock); err != nil || v.Granted != 1 {
					t.Errorf("%+v, %v", v, err)
				}
			}
		})
	}
	wg.Wait()
}

// Requests on a key that is plain again, and after a reset, are one command each, as on one that always was.
func TestPlainAgain(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	b := named(t, s, once(t), "100/1000h")[0]
	for i, step := range []struct {
		op   algorithm.Op
		want int
	}{
		{algorithm.Op{Cost: 1}, 1},
		{algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: int64(time.Hour)}, 2},
		{algorithm.Op{Cost: 1}, 2},
		{algorithm.Op{}, 1},
		{algorithm.Op{Kind: algorithm.Commit, ID: 1, Cost: 1}, 2},
		{algorithm.Op{Cost: 1}, 1},
		{algorithm.Op{Kind: algorithm.Reserve, ID: 2, Cost: 1, Life: int64(time.Hour)}, 2},
		{algorithm.Op{Kind: algorithm.Reset}, 1},
		{algorithm.Op{Cost: 1}, 1},
		{algorithm.Op{Kind: algorithm.Commit, ID: 2}, 1}, // there is none: nothing is written
		{algorithm.Op{Cost: 1}, 1},
	} {
		before := calls(t, c, "evalsha")
		do(t, b, "key", step.op)
		if n := calls(t, c, "evalsha") - before; n != step.want {
			t.Errorf("step %d: %d commands, want %d", i, n, step.want)
		}
	}
}

// Limits that the script has no code for take a load and a swap; without a change, a load. Requests
// of one process at the same time share them, and admit exactly the limit.
func TestCommandsOfSwappedAlgorithms(t *testing.T) {
	s := open(t, redis.Options{Timeout: 10 * time.Second})
	c := raw(t, server(t).Addr())
	for _, text := range []string{"hybrid 50/1000h", "exponential 50/1000h"} {
		for _, name := range []string{once(t), ""} {
			b, key := bind(t, s, name, text), once(t)
			for i, step := range []struct {
				op   algorithm.Op
				want int
			}{
				{algorithm.Op{Cost: 1}, 2},
				{algorithm.Op{}, 1},
				{algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 100}, 2},
				{algorithm.Op{Cost: 1}, 1},
				{algorithm.Op{Cost: 1 << 40}, 1},
				{algorithm.Op{Kind: algorithm.Refund, Cost: 2}, 2},
				{algorithm.Op{Kind: algorithm.Reset}, 1},
			} {
				before := calls(t, c, "evalsha")
				do(t, b, key, step.op)
				if n := calls(t, c, "evalsha") - before; n != step.want {
					t.Errorf("%s: step %d: %d commands, want %d", text, i, n, step.want)
				}
			}
			var granted atomic.Int64
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() { granted.Add(max(0, take(t, b, key, 1).Granted)) })
			}
			wg.Wait()
			if granted.Load() != 50 {
				t.Errorf("%s: %d of 200 are admitted, want 50", text, granted.Load())
			}
		}
	}
}

// What is too long to be told to everyone who asks is shown whole by an Inspector, and a denial, a peek and a refund find it.
func TestLongForeignAccount(t *testing.T) {
	s := open(t, redis.Options{})
	for _, from := range []string{"sliding-log 300/1000h", "concurrent 300 lease=1000h"} {
		b := named(t, s, once(t), from, "sliding-log 250/1000h")
		fill(t, b[0], 300)
		state, _, err := b[1].(store.Inspector).Inspect(t.Context(), "key", store.OwnClock)
		if err != nil || len(state) == 0 {
			t.Errorf("%q: it is inspected as %v, %v", from, state, err)
		}
		if v := take(t, b[1], "key", 0); v.Remaining != 0 {
			t.Errorf("%q: a peek: %+v", from, v)
		}
		if v := take(t, b[1], "key", 1); v.Granted != -1 {
			t.Errorf("%q: a take: %+v", from, v)
		}
		do(t, b[1], "key", algorithm.Op{Kind: algorithm.Refund, Cost: 60})
		if v := take(t, b[1], "key", 0); v.Remaining < 10 {
			t.Errorf("%q: after a refund: %+v", from, v)
		}
	}
}
