package memcached

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	engines "github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
)

// Processes whose wall clocks differ by s admit, in any interval, what the limit admits in one that is longer by s. Clocks that step
// back and forth within s are no worse.
func TestClockSkewIsSoMuchMoreTime(t *testing.T) {
	const skew, steps = 3 * time.Second, 1500
	server := engines.Memcached(t)
	for _, c := range []struct {
		text string
		most func(interval time.Duration) int64 // of units that the limit admits within it
	}{
		{"10/5s", func(d time.Duration) int64 { return 10 + int64(d/(500*time.Millisecond)) }},
		{"gcra 3/1s burst=4", func(d time.Duration) int64 { return 4 + int64(3*d/time.Second) }},
		{"fixed-window 10/5s", func(d time.Duration) int64 { return 10 * (int64((d+5*time.Second-1)/(5*time.Second)) + 1) }},
		{"quota-reset 10/5s", func(d time.Duration) int64 { return 10 * (int64(d/(5*time.Second)) + 2) }},
		{"sliding-log 10/5s", func(d time.Duration) int64 { return 10 * (int64(d/(5*time.Second)) + 1) }},
	} {
		t.Run(c.text, func(t *testing.T) {
			base := time.Unix(1_700_000_000, 0)
			var now [3]atomic.Int64 // µs after base, by each process's clock
			var bindings [3]store.Binding
			for i := range bindings {
				s, err := Open(t.Context(), server.URL(), Options{Timeout: 10 * time.Minute, now: func() time.Time {
					return base.Add(time.Duration(now[i].Load()) * time.Microsecond)
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if bindings[i], err = s.Bind(store.Spec{Name: t.Name(), Limit: algorithm.MustParseLimit(c.text)}); err != nil {
					t.Fatal(err)
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			var admitted []time.Duration
			for at := time.Duration(0); len(admitted) < 400 && at < steps*time.Second; at += time.Duration(random.Int64N(int64(200 * time.Millisecond))) {
				i := random.IntN(len(bindings))
				offset := []time.Duration{0, skew, time.Duration(random.Int64N(int64(skew)))}[i] // slow, fast, unsteady
				now[i].Store((at + offset).Microseconds())
				v, err := bindings[i].Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
				if err != nil {
					t.Fatal(err)
				}
				if v.Granted == 1 {
					admitted = append(admitted, at)
				}
			}
			for i := range admitted {
				for j := i; j < len(admitted); j++ {
					interval := admitted[j] - admitted[i] + time.Microsecond
					if n, most := int64(j-i+1), c.most(interval+skew); n > most {
						t.Fatalf("%d within %v, want up to %d", n, interval, most)
					}
				}
			}
			if len(admitted) < 100 {
				t.Errorf("%d were admitted in all", len(admitted))
			}
		})
	}
}
