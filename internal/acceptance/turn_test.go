package acceptance_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// W3: a turn that was given by a slower limit, and one that was given by a faster one, keep their order when the limit goes to and fro, and their distance too.
func TestPitfallW3TurnsOfSeveralPaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := limiter(t, "leaky-queue 10/1s queue=49", weir.WithName("plan")), newCrowd(53)
		for i := range 50 { // the last of them at 4.9 s
			queued.wait(t.Context(), l, i, 1)
		}
		time.Sleep(50 * time.Millisecond)
		setLimit(t, l, "leaky-queue 1/1s queue=4")
		time.Sleep(time.Second)
		queued.wait(t.Context(), l, 50, 1)
		queued.wait(t.Context(), l, 51, 1)
		setLimit(t, l, "leaky-queue 10/1s queue=60")
		queued.wait(t.Context(), l, 52, 1)
		queued.group.Wait()
		for i, at := range queued.passed[:50] {
			if want := time.Duration(i) * 100 * time.Millisecond; at != want {
				t.Errorf("turn %d came at %v, want %v as it was given", i, at, want)
			}
		}
		if !slices.IsSorted(queued.order) || queued.passed[51]-queued.passed[50] < 100*time.Millisecond || queued.passed[50]-queued.passed[49] < 100*time.Millisecond {
			t.Errorf("passed at %v in the order %v; errors %v", queued.passed[49:], queued.order, queued.errs)
		}
	})
}

// TestCancelledTurnOfAnotherLimit: a place that is given up after a change is given back under the limit that gave it, and that gives nothing away under the next.
func TestCancelledTurnOfAnotherLimit(t *testing.T) {
	for _, next := range []string{"fixed-window 10/1s", "quota-reset 10/1s", "sliding-log 10/1s"} {
		now := time.Now().Add(time.Hour)
		l := at(t, "leaky-queue 1/1m queue=9", &now, weir.WithName("plan"))
		takeAt(t, l, 1, now)
		r, err := l.Reserve(background, "k", 1)
		if err != nil || r.Delay != time.Minute {
			t.Fatal(r, err)
		}
		setLimit(t, l, next)
		takeAt(t, l, 1, now)
		now = now.Add(20 * time.Second) // all that was used has come back
		if n, _, err := l.TakeUpTo(background, "k", 100); err != nil || n != 10 {
			t.Errorf("%s: %d, %v", next, n, err)
		}
		if err := r.Cancel(background); err != nil {
			t.Fatal(err)
		}
		if n, _, err := l.TakeUpTo(background, "k", 100); err != nil || n != 0 {
			t.Errorf("%s: %d more, %v", next, n, err)
		}
	}
	now := time.Now().Add(time.Hour)
	l := at(t, "leaky-queue 1/1m queue=2", &now, weir.WithName("plan"))
	takeAt(t, l, 1, now)
	r, err := l.Reserve(background, "k", 1)
	if err != nil || !r.Allowed {
		t.Fatal(r, err)
	}
	setLimit(t, l, "leaky-queue 1/1m queue=9")
	if before := left(t, l); before != 8 {
		t.Fatalf("%d left", before)
	}
	if err := r.Cancel(background); err != nil || left(t, l) != 9 {
		t.Errorf("%v, %d left; want 9, as the queue was only made longer", err, left(t, l))
	}
}

// A hooked store calls back, once, when a Take has taken effect, before its answer is there, and before and after a look at a state.
type hooked struct {
	store.Store
	after, looking, looked hook
}

type hookedBinding struct {
	store.Binding
	store.Inspector
	store *hooked
}

func (s *hooked) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	inspector, _ := b.(store.Inspector)
	return hookedBinding{b, inspector, s}, err
}

func (b hookedBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, err := b.Binding.Do(ctx, key, op, now)
	if op.Kind == algorithm.Take && op.Cost > 0 {
		b.store.after.run()
	}
	return v, err
}

func (b hookedBinding) Inspect(ctx context.Context, key string, now int64) ([]int64, int64, error) {
	b.store.looking.run()
	state, at, err := b.Inspector.Inspect(ctx, key, now)
	b.store.looked.run()
	return state, at, err
}

type hook struct{ f atomic.Pointer[func()] }

func (h *hook) set(f func()) { h.f.Store(&f) }

func (h *hook) run() {
	if f := h.f.Swap(nil); f != nil {
		(*f)()
	}
}

// W3: a limit that is raised while the answer of the slower one is on its way.
func TestPitfallW3RaisedWhileAsking(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     time.Duration
	}{
		{"leaky-queue 1/1m queue=9", "leaky-queue 1/1s queue=9", time.Second}, // its turn was given, and comes earlier
		{"1/1m", "1/1s", time.Second},                                         // it was denied, and asks again
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &hooked{Store: memory.New(memory.Options{})}
			l := limiter(t, c.from, weir.WithName("plan"), weir.WithStore(s))
			takes(t, l, 1)
			s.after.set(func() { setLimit(t, l, c.to) })
			start := time.Now()
			if err := l.Wait(t.Context(), "k", 1); err != nil || time.Since(start) != c.want {
				t.Errorf("%s to %s: waited %v, %v; want %v", c.from, c.to, time.Since(start), err, c.want)
			}
		})
	}
}

// TestTurnsKeepTheRate: nothing is rounded twice, so that a queue that is never empty is as fast as its limit.
func TestTurnsKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := newLimiter(t, "leaky-queue 300000001/1s queue=1000"), newCrowd(1000)
		for i := range 1000 {
			queued.group.Go(func() { queued.errs[i] = l.Wait(t.Context(), "k", 1) })
		}
		queued.group.Wait()
		if took := time.Since(queued.start); took != 3330 {
			t.Errorf("1000 took %v, want 3330ns; errors %v", took, queued.errs[0])
		}
	})
}

// A happening of a scenario is one that comes to wait, one that gives up, or a limit that changes.
type happening struct {
	after time.Duration
	what  string
	cost  int64
	limit string
	who   int
}

func scenario(t *rapid.T) (all []happening, limits []string, comers int) {
	queue := rapid.IntRange(4, 40)
	if rapid.Bool().Draw(t, "of one length") {
		queue = rapid.Just(queue.Draw(t, "queue"))
	}
	for range rapid.IntRange(1, 4).Draw(t, "limits") {
		limits = append(limits, fmt.Sprintf("leaky-queue %d/1s queue=%d", rapid.SampledFrom([]int{1, 3, 10, 7}).Draw(t, "count"), queue.Draw(t, "queue")))
	}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		h := happening{after: time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond, what: rapid.SampledFrom([]string{"come", "come", "come", "give up", "set"}).Draw(t, "what")}
		switch h.what {
		case "come":
			h.cost = rapid.Int64Range(1, 3).Draw(t, "cost")
			h.who = comers
			comers++
		case "give up":
			h.who = rapid.IntRange(0, 40).Draw(t, "who")
		case "set":
			h.limit = rapid.SampledFrom(limits).Draw(t, "limit")
		}
		all = append(all, h)
	}
	return all, limits, comers
}

// hurried finds two of whom the later passed first, or who were less apart than those before the second took, each unit for a time.
func (c *crowd) hurried(costs []int64, unit time.Duration) string {
	for i, at := range c.passed {
		apart := -time.Microsecond // what is hastened is rounded
		for j := i; j < len(c.passed); j++ {
			if c.errs[i] == nil && c.errs[j] == nil && c.passed[j]-at < max(0, apart) {
				return fmt.Sprintf("%d passed at %v and %d at %v; want %v between; costs %v", i, at, j, c.passed[j], apart, costs)
			}
			if c.errs[j] == nil {
				apart += time.Duration(costs[j] * int64(unit))
			}
		}
	}
	return ""
}

// TestTurnsThroughAnyChanges: however a leaky-queue changes and whoever gives up, those who wait go first in, first out, and no faster than
// the fastest of the limits.
func TestTurnsThroughAnyChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all, limits, comers := scenario(rt)
		fastest := time.Hour
		for _, text := range limits {
			fastest = min(fastest, weir.MustParseLimit(text).Period/time.Duration(weir.MustParseLimit(text).Count))
		}
		wrong := ""
		synctest.Test(t, func(t *testing.T) {
			l, queued, costs := limiter(t, limits[0], weir.WithName("plan")), newCrowd(comers), make([]int64, comers)
			giveUp := map[int]context.CancelFunc{}
			for _, h := range all {
				time.Sleep(h.after)
				switch h.what {
				case "come":
					ctx, cancel := context.WithCancel(t.Context())
					giveUp[h.who], costs[h.who] = cancel, h.cost
					queued.wait(ctx, l, h.who, h.cost)
				case "give up":
					if f := giveUp[h.who]; f != nil {
						f()
						synctest.Wait()
					}
				case "set":
					setLimit(t, l, h.limit)
				}
			}
			queued.group.Wait()
			wrong = queued.hurried(costs, fastest)
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
