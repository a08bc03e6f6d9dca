package acceptance_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
)

// TestCancelAdmitsNoMoreThanTheLimit: all of a key is reserved, some of it comes back by itself and is taken by others, and
// then the reservation is cancelled. What is kept never exceeds what the limit admits without the reservation.
func TestCancelAdmitsNoMoreThanTheLimit(t *testing.T) {
	cases := []struct {
		limit string
		wait  time.Duration
		most  int64 // kept at the end
	}{
		{"10/1s", 900 * time.Millisecond, 10}, {"7/1s", 900 * time.Millisecond, 7}, {"13/1s burst=20", 900 * time.Millisecond, 20},
		{"leaky-bucket 10/1s", 900 * time.Millisecond, 10}, {"cooldown 10/1s", 900 * time.Millisecond, 10},
		{"refill-bucket 10/1s burst=20", time.Second, 20}, {"fixed-window 10/1s", 900 * time.Millisecond, 10},
		{"fixed-window 10/1s", time.Second, 10}, {"quota-reset 10/1s", time.Second, 10}, {"sliding-window 10/1s", 1500 * time.Millisecond, 10},
		{"sliding-log 10/1s", 900 * time.Millisecond, 10}, {"sliding-buckets 10/1s cells=10", 900 * time.Millisecond, 10},
		{"exponential 10/1s", 900 * time.Millisecond, 10}, {"hybrid 10/1s", 900 * time.Millisecond, 10}, {"hybrid 10/1s", 1500 * time.Millisecond, 10},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.limit, "/", c.wait), func(t *testing.T) {
			ctx, now := t.Context(), time.Unix(1000, 0)
			l, err := weir.New(weir.MustParseLimit(c.limit), weir.WithClock(func() time.Time { return now }))
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.Reserve(ctx, "k", l.Limit().Capacity())
			if err != nil || !r.Allowed {
				t.Fatal(r, err)
			}
			now = now.Add(c.wait)
			before, _, _ := l.TakeUpTo(ctx, "k", 1000)
			if err := r.Cancel(ctx); err != nil {
				t.Fatal(err)
			}
			after, _, _ := l.TakeUpTo(ctx, "k", 1000)
			if before+after > c.most {
				t.Errorf("%d before and %d after the cancellation, want at most %d", before, after, c.most)
			}
		})
	}
}

// TestCancelTakesItsOwnUnits: where the algorithm knows which units were taken when, a cancellation frees those, not those
// that others took later.
func TestCancelTakesItsOwnUnits(t *testing.T) {
	for _, text := range []string{"sliding-log 10/1s", "sliding-buckets 10/1s cells=10"} {
		t.Run(text, func(t *testing.T) {
			ctx, now := t.Context(), time.Unix(1000, 0)
			l, _ := weir.New(weir.MustParseLimit(text), weir.WithClock(func() time.Time { return now }))
			r, _ := l.Reserve(ctx, "k", 5)
			now = now.Add(900 * time.Millisecond)
			kept, _, _ := l.TakeUpTo(ctx, "k", 5)
			if err := r.Cancel(ctx); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				more, _, _ := l.TakeUpTo(ctx, "k", 5)
				kept += more
				now = now.Add(100 * time.Millisecond)
			}
			if kept > 10 {
				t.Errorf("%d units were kept within a window, want at most 10", kept)
			}
		})
	}
}

func TestCancelWorksWhenTheContextHasEnded(t *testing.T) {
	l := newLimiter(t, "10/1h")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := l.Reserve(ctx, "k", 10)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := r.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if d, _ := l.Peek(t.Context(), "k"); d.Remaining != 10 {
		t.Errorf("%d remaining, want 10", d.Remaining)
	}
}

// TestCancelGoesByTheLimitersClock: a window that is over by the clock of WithClock has nothing to give back.
func TestCancelGoesByTheLimitersClock(t *testing.T) {
	now := time.Unix(1000, 0)
	l, _ := weir.New(weir.MustParseLimit("fixed-window 10/1s"), weir.WithClock(func() time.Time { return now }))
	r, _ := l.Reserve(t.Context(), "k", 10)
	now = now.Add(time.Hour)
	l.Take(t.Context(), "k", 10)
	if err := r.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, _ := l.Take(t.Context(), "k", 1); d.Allowed {
		t.Error("a reservation of another window freed a unit of this one")
	}
}

// TestUsedReservationsAreForgotten: a reservation that is kept leaves nothing behind in the limiter.
func TestUsedReservationsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "leaky-queue 1000000/1s queue=1000")
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		for range 200 {
			for range 500 {
				if _, err := l.Reserve(t.Context(), "k", 1); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Millisecond)
		}
		if after := heap(); after > before+1<<20 {
			t.Errorf("the heap has grown by %d bytes", after-before)
		}
		runtime.KeepAlive(l)
	})
}
