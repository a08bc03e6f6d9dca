package acceptance_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/redis"
)

// TestManyChangesLeaveNothingBehind, neither in the process nor in the engine: what a key has is bounded.
func TestManyChangesLeaveNothingBehind(t *testing.T) {
	ours := memory.New(memory.Options{})
	changeOften(t, limiter(t, "1000/1h", weir.WithName("plan"), weir.WithStore(ours)), 10_000)
	if n := ours.Stats().Keys; n != 1 {
		t.Errorf("%d keys in memory, want 1", n)
	}
}

func TestManyChangesLeaveNothingBehindInAnEngine(t *testing.T) {
	changes := int64(2000)
	if testing.Short() {
		changes /= 10
	}
	server := testengine.Redis(t)
	s, err := redis.Open(t.Context(), server.URL(), redis.Options{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	changeOften(t, limiter(t, "1000/1h", weir.WithName("plan"), weir.WithStore(s)), changes)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ask := func(words ...string) int64 {
		n, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToInt64()
		if err != nil {
			t.Fatal(words, err)
		}
		return n
	}
	const name = "weir:1:{k}:plan"
	if keys, bytes, life := ask("DBSIZE"), ask("STRLEN", name), ask("PTTL", name); keys != 1 || bytes > 1000 || life <= 0 || life > 2*3600*1000 {
		t.Errorf("%d keys; of %s %d bytes for %d ms; want one, of at most 1000, for up to two hours", keys, name, bytes, life)
	}
}

// changeOften sets another limit again and again, and measures what that leaves on the heap.
func changeOften(t *testing.T, l *weir.Limiter, times int64) {
	t.Helper()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	change := func(i int64) {
		limit := l.Limit()
		if limit.Count = 1000 + i; i%3 == 0 {
			limit.Algorithm, limit.Burst = weir.FixedWindow, 0
		} else {
			limit.Algorithm, limit.Burst = weir.TokenBucket, limit.Count
		}
		if err := l.SetLimit(limit); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Take(background, "k", 1); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(100) { // what the first ones need
		change(i)
	}
	before := heap()
	for i := range times {
		change(100 + i)
	}
	after := heap()
	for range 100 { // the cleanups of garbage run beside the program, some time after a collection
		if after <= before+64<<10 {
			break
		}
		runtime.Gosched()
		after = heap()
	}
	if after > before+64<<10 {
		t.Errorf("%d changes left %d bytes on the heap", times, after-before)
	}
	runtime.KeepAlive(l)
}
