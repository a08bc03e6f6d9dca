package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store/redis"
)

// The pitfalls of waiting. Those who wait do so in real time, which testing/synctest tells here.

// W1: what is spaced is spaced from the last one that passed, not by ticks of a clock: with one in a second, and takes at 0.9 s and 1.0 s, the second waits 0.9 s.
func TestPitfallW1Spacing(t *testing.T) {
	for _, text := range []string{"min-interval 1/1s", "gcra 1/1s burst=1", "1/1s", "leaky-queue 1/1s", "sliding-log 1/1s", "quota-reset 1/1s"} {
		first, second := time.Unix(1_790_000_000, 900_000_000), time.Unix(1_790_000_001, 0)
		l := newLimiter(t, text)
		if d := takeAt(t, l, 1, first); !d.Allowed || d.Delay != 0 {
			t.Errorf("%s: at 0.9 s: %+v", text, d)
		}
		d := takeAt(t, l, 1, second)
		if wait := max(d.RetryAfter, d.Delay); wait != 900*time.Millisecond || d.Allowed != (l.Limit().Algorithm == weir.LeakyQueue) {
			t.Errorf("%s: at 1.0 s: %+v, want a wait of 0.9 s", text, d)
		}
		synctest.Test(t, func(t *testing.T) { // the same, for who waits
			l := newLimiter(t, text)
			time.Sleep(900 * time.Millisecond)
			for _, want := range []time.Duration{0, 900 * time.Millisecond} {
				start := time.Now()
				if err := l.Wait(t.Context(), "k", 1); err != nil || time.Since(start) != want {
					t.Errorf("%s: waited %v, %v; want %v", text, time.Since(start), err, want)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// W1: one that comes late does not make the next one come early, and an idle time is not saved up.
func TestPitfallW1NothingIsSavedUp(t *testing.T) {
	for _, text := range []string{"min-interval 1/1s", "gcra 1/1s burst=1", "leaky-queue 1/1s queue=9"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, text)
			var passed []time.Duration
			start := time.Now()
			for _, pause := range []time.Duration{0, 0, 1400 * time.Millisecond, 0, time.Minute, 0, 0} {
				time.Sleep(pause)
				if err := l.Wait(t.Context(), "k", 1); err != nil {
					t.Fatal(err)
				}
				passed = append(passed, time.Since(start).Round(time.Millisecond))
			}
			if want := []int64{0, 1000, 2400, 3400, 63400, 64400, 65400}; !slices.Equal(passed, scaled(want, time.Millisecond)) {
				t.Errorf("%s: passed at %v, want %v ms", text, passed, want)
			}
		})
	}
}

func scaled(times []int64, unit time.Duration) (all []time.Duration) {
	for _, n := range times {
		all = append(all, time.Duration(n*int64(unit)))
	}
	return all
}

// W2, for limits with states of several words, and for a limiter with a name. See
// TestPitfallW2HopelessDeadline.
func TestPitfallW2OfNames(t *testing.T) {
	for _, text := range []string{"1/5s", "min-interval 1/5s", "sliding-window 1/5s", "sliding-buckets 1/5s", "leaky-queue 1/5s queue=5"} {
		synctest.Test(t, func(t *testing.T) {
			hopelessWait(t, limiter(t, text, weir.WithName("plan")), time.Second)
			if passed := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); passed != 0 { // when every bubble begins
				t.Errorf("%s: returned after %v, want at once", text, passed)
			}
		})
	}
}

// W2, on an engine: it takes a round trip or two, and not the time until the deadline.
func TestPitfallW2OnAnEngine(t *testing.T) {
	s, err := redis.Open(t.Context(), testengine.Redis(t).URL(), redis.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"1/5h", "fixed-window 1/100000h", "sliding-log 1/5h", "leaky-queue 1/5h queue=5"} {
		hopelessWait(t, limiter(t, text, weir.WithStore(s)), time.Hour)
		hopelessWait(t, limiter(t, text, weir.WithStore(s), weir.WithName(text)), time.Hour)
	}
}

// hopelessWait takes all of "k" and waits for one more until a deadline that is too early.
func hopelessWait(t *testing.T, l *weir.Limiter, deadline time.Duration) {
	t.Helper()
	if err := l.Wait(t.Context(), "k", 1); err != nil {
		t.Fatal(err)
	}
	before := left(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := l.Wait(ctx, "k", 1); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%v: got %v, and of the context %v; want DeadlineExceeded before it is", l.Limit(), err, ctx.Err())
	}
	if left(t, l) != before {
		t.Errorf("%v: %d left, want %d as before", l.Limit(), left(t, l), before)
	}
}

// A crowd waits on the key "k", one after another.
type crowd struct {
	group  sync.WaitGroup
	start  time.Time
	mu     sync.Mutex
	order  []int           // in which they passed
	passed []time.Duration // when, by their number; 0 for those that did not
	errs   []error
}

func newCrowd(size int) *crowd {
	return &crowd{start: time.Now(), passed: make([]time.Duration, size), errs: make([]error, size)}
}

func (c *crowd) wait(ctx context.Context, l *weir.Limiter, i int, cost int64) {
	c.group.Go(func() {
		err := l.Wait(ctx, "k", cost)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.errs[i], c.passed[i] = err, time.Since(c.start); err == nil {
			c.order = append(c.order, i)
		}
	})
	synctest.Wait() // to keep their order
}

// W3: a limit that is raised while requests are queued wakes them, and they go first in, first out.
func TestPitfallW3RaisedWhileQueued(t *testing.T) {
	cases := []struct {
		from, to string
		passed   []int64 // in seconds; the first takes all there is at once, and the limit changes after 30 s
	}{
		{"1/1h", "5/1h", []int64{30, 30, 30, 30, 744}},
		{"1/1h", "10/1h", []int64{30, 30, 30, 30, 30}},
		{"min-interval 1/100s", "min-interval 1/10s", []int64{37, 47, 57, 67, 77}},
		{"fixed-window 1/1h", "fixed-window 4/1h", []int64{30, 30, 30, 3600, 3600}},
		{"quota-reset 1/1h", "quota-reset 6/1h", []int64{30, 30, 30, 30, 30}},
		{"sliding-log 1/1h", "sliding-log 3/1h", []int64{30, 30, 3600, 3630, 3630}},
		{"1/1h", "fixed-window 3/1m", []int64{30, 30, 60, 60, 60}},
		{"leaky-queue 1/1m queue=9", "leaky-queue 6/1m queue=9", []int64{35, 45, 55, 65, 75}},
		{"leaky-queue 1/1m queue=2", "leaky-queue 6/1m queue=2", []int64{35, 45, 55, 65, 75}},
		{"leaky-queue 1/1m queue=9", "6/1m", []int64{35, 45, 55, 65, 75}},
		{"leaky-queue 1/1m queue=9", "fixed-window 6/1m", []int64{35, 45, 55, 65, 75}},
		{"leaky-queue 1/1m queue=9", "leaky-bucket 1/1h", []int64{60, 120, 180, 240, 300}},
		{"leaky-queue 1/1m queue=9", "concurrent 6 lease=1m", []int64{60, 120, 180, 240, 300}},
	}
	for _, c := range cases {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limiter(t, c.from, weir.WithName("plan"))
				takes(t, l, 1)
				queued := newCrowd(len(c.passed))
				for i := range c.passed {
					queued.wait(t.Context(), l, i, 1)
				}
				time.Sleep(30 * time.Second)
				setLimit(t, l, c.to)
				queued.group.Wait()
				if want := scaled(c.passed, time.Second); !slices.Equal(queued.passed, want) {
					t.Errorf("passed at %v, want %v; errors %v", queued.passed, want, queued.errs)
				}
			})
		})
	}
}

func takes(t *testing.T, l *weir.Limiter, cost int64) {
	t.Helper()
	if d, err := l.Take(t.Context(), "k", cost); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
}

// W3: who comes after the raise goes behind those that were queued before it, also where their turns were given by the slower limit.
func TestPitfallW3WhoComesLaterGoesLater(t *testing.T) {
	for _, c := range [][2]string{{"1/1m", "10/1m"}, {"leaky-queue 1/1m queue=20", "leaky-queue 60/1m queue=20"}, {"leaky-queue 1/1m queue=3", "leaky-queue 7/1m queue=30"}, {"leaky-queue 1/1m queue=9", "100/1m"}, {"leaky-queue 1/1m queue=9", "sliding-log 100/1m"}} {
		t.Run(c[0]+" to "+c[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, queued := limiter(t, c[0], weir.WithName("plan")), newCrowd(12)
				for i := range 6 {
					queued.wait(t.Context(), l, i, 1)
				}
				time.Sleep(40 * time.Second)
				setLimit(t, l, c[1])
				for i := 6; i < 12; i++ {
					queued.wait(t.Context(), l, i, 1)
				}
				queued.group.Wait()
				if !slices.IsSorted(queued.passed) || len(queued.order) != 12 {
					t.Errorf("passed at %v; errors %v", queued.passed, queued.errs)
				}
			})
		})
	}
}

// W3, the other way: when a limit is lowered, whoever can't pass any more, or not in time, is told at once, wherever in the line.
func TestPitfallW3LoweredWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "10/10s", weir.WithName("plan"))
		takes(t, l, 10)
		queued := newCrowd(7)
		queued.wait(t.Context(), l, 0, 8)
		queued.wait(until(t, 30*time.Second), l, 1, 2) // at 10 s, when all is back at the pace of the limit before
		queued.wait(t.Context(), l, 2, 5)
		queued.wait(until(t, 29*time.Second), l, 3, 1) // at 30 s at the pace of the next limit, by which deadlines go
		queued.wait(t.Context(), l, 4, 2)              // at 30 s, as 3 is not there
		queued.wait(until(t, 41*time.Second), l, 5, 1) // not before 50 s at that pace
		queued.wait(until(t, 52*time.Second), l, 6, 1) // at 40 s
		time.Sleep(time.Second)
		setLimit(t, l, "2/20s")
		queued.group.Wait()
		for i, cost := range map[int]int64{0: 8, 2: 5} {
			var above *weir.CapacityError
			if !errors.As(queued.errs[i], &above) || *above != (weir.CapacityError{Cost: cost, Capacity: 2}) || queued.passed[i] != time.Second {
				t.Errorf("of cost %d: %v at %v, want a CapacityError at once", cost, queued.errs[i], queued.passed[i])
			}
		}
		for _, i := range []int{3, 5} {
			if !errors.Is(queued.errs[i], context.DeadlineExceeded) || queued.passed[i] != time.Second {
				t.Errorf("too late: %v at %v, want DeadlineExceeded at once", queued.errs[i], queued.passed[i])
			}
		}
		if want := scaled([]int64{1, 10, 1, 1, 30, 1, 40}, time.Second); !slices.Equal(queued.order, []int{1, 4, 6}) || !slices.Equal(queued.passed, want) {
			t.Errorf("passed in the order %v at %v; errors %v", queued.order, queued.passed, queued.errs)
		}
	})
}
