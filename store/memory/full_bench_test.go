package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// BenchmarkFull is a Take of a known key, and of a new key of a full store: their ratio is the cost
// of a flood.
func BenchmarkFull(b *testing.B) {
	for _, text := range []string{"1000000/8760h", "sliding-window 1000000/8760h"} {
		s := memory.New(memory.Options{MaxBytes: 64 << 20})
		binding := bind(b, s, text)
		for i := 0; s.Stats().Overflowed == 0; i++ {
			do(b, binding, fmt.Sprint(i), algorithm.Op{Cost: 1}, store.OwnClock)
		}
		keys := map[string][]string{}
		for i := range benchedKeys {
			keys["known"] = append(keys["known"], fmt.Sprint(i))
			keys["new"] = append(keys["new"], fmt.Sprint("new", i))
		}
		for _, kind := range []string{"known", "new"} {
			b.Run(text+" "+kind, func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if _, err := binding.Do(context.Background(), keys[kind][i%benchedKeys], algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
						b.Fatal(err)
					}
					i++
				}
			})
		}
	}
}
