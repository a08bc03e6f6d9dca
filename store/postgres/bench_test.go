package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
)

// durable is a server that waits for its disk, which those of tests do not.
var durable = testengine.Shared(func(t testing.TB) *testengine.Server {
	return testengine.Postgres(t, "-c", "fsync=on", "-c", "full_page_writes=on")
})

// BenchmarkTake is 400 requests at a time, on one key and on 400, by one pool of connections and by four. It
// reports how long one took, besides the time for each.
func BenchmarkTake(b *testing.B) {
	for _, setting := range []string{"", "&synchronous_commit=off"} {
		for _, text := range []string{"1000000000/1h", "1/1000h", "sliding-log 1000000/1000h"} {
			for _, pools := range []int{1, 4} {
				for _, keys := range []int{1, 400} {
					name := fmt.Sprintf("commit=%s/limit=%s/pools=%d/keys=%d", map[bool]string{true: "on", false: "off"}[setting == ""], text, pools, keys)
					b.Run(name, func(b *testing.B) { benchmark(b, setting, text, pools, keys) })
				}
			}
		}
	}
}

func benchmark(b *testing.B, setting, text string, pools, keys int) {
	o := mine(b)
	bindings := make([]store.Binding, pools)
	for i := range bindings {
		bindings[i] = bind(b, open(b, durable(b).URL()+"&pool_max_conns=4"+setting, o), text)
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
	}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 400 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				began := time.Now()
				if _, err := bindings[i%int64(pools)].Do(b.Context(), names[i%int64(keys)], algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
					b.Error(err)
				}
				took[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2])/1e6, "p50-ms")
	b.ReportMetric(float64(took[b.N*99/100])/1e6, "p99-ms")
}

// BenchmarkTakeAll is 400 requests at a time of a limit for all clients and one for each of 400, by one pool and by four.
func BenchmarkTakeAll(b *testing.B) {
	for _, pools := range []int{1, 4} {
		b.Run(fmt.Sprintf("pools=%d", pools), func(b *testing.B) {
			o := mine(b)
			parts := make([][]store.Part, 400)
			stores := make([]store.Store, pools)
			for i := range stores {
				stores[i] = open(b, durable(b).URL()+"&pool_max_conns=4", o)
			}
			for i := range parts {
				s := stores[i%pools]
				parts[i] = []store.Part{part(b, s, "1000000000/1h", "all"), part(b, s, "sliding-window 1000000/1h", fmt.Sprint(i))}
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range parts {
				wg.Go(func() {
					for next.Add(1) <= int64(b.N) {
						if _, err := store.TakeAll(b.Context(), parts[i], store.OwnClock); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			lost := int64(0)
			for _, s := range stores {
				lost += s.(store.Counter).Counts().Conflicts
			}
			b.ReportMetric(float64(lost)/float64(b.N), "lost/op")
		})
	}
}
