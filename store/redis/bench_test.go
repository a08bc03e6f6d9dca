package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// BenchmarkTake takes from one key, as one caller and as many at a time.
func BenchmarkTake(b *testing.B) {
	s := open(b, redis.Options{})
	binding := bind(b, s, "bench", "1000000000/1h")
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			b.ReportAllocs()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range b.N / callers {
						if _, err := binding.Do(context.Background(), "key", algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
