package acceptance_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// BenchmarkTake is a decision in memory on one key. Coarse is one that reads no clock of the system, which is most of the others.
func BenchmarkTake(b *testing.B) {
	coarse := memory.New(memory.Options{ClockResolution: time.Millisecond})
	defer coarse.Close()
	for _, c := range []struct {
		name, limit string
		options     []weir.Option
	}{
		{"admitted", "1000000000/1s", nil},
		{"denied", "1/24h", nil},
		{"coarse", "1/24h", []weir.Option{weir.WithStore(coarse)}},
		{"named", "1000000000/1s", []weir.Option{weir.WithName("bench")}},
	} {
		l := limiter(b, c.limit, c.options...)
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			for b.Loop() {
				if _, err := l.Take(ctx, "user:42", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
