package acceptance_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

func setLimit(t testing.TB, l *weir.Limiter, text string) {
	t.Helper()
	if err := l.SetLimit(weir.MustParseLimit(text)); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Limit(), weir.MustParseLimit(text).Canonical(); got != want {
		t.Fatalf("the limit is %v, want %v", got, want)
	}
}

// S18: of a limit that is raised and lowered, each greatest capacity is there once.
func TestPitfallS18LimitSetToAndFro(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "10/1h", &now, weir.WithName("plan"))
	for _, c := range []struct {
		limit string
		room  int64
	}{{"10/1h", 10}, {"20/1h", 10}, {"10/1h", 0}, {"20/1h", 0}, {"fixed-window 25/1h", 5}, {"1/1h", 0}, {"20/1h", 0}, {"30/1h", 5}} {
		setLimit(t, l, c.limit)
		if n, d, err := l.TakeUpTo(background, "k", 1000); err != nil || n != c.room || d.Limit != l.Limit().Capacity() {
			t.Errorf("%s: %d, %+v, %v; want %d", c.limit, n, d, err, c.room)
		}
	}
}

func TestSetLimitRefusesAndChangesNothing(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "10/1h", &now, weir.WithName("plan"))
	takeAt(t, l, 3, now)
	for _, limit := range []weir.Limit{{}, {Count: -1, Period: time.Hour}, {Count: 5, Period: time.Hour, Burst: -1}, {Algorithm: "none", Count: 1, Period: time.Hour}} {
		var refused *weir.LimitError
		if err := l.SetLimit(limit); !errors.As(err, &refused) || l.Limit() != weir.MustParseLimit("10/1h").Canonical() || left(t, l) != 7 {
			t.Errorf("%+v: %v, then %v with %d left", limit, err, l.Limit(), left(t, l))
		}
	}
	unnamed := at(t, "10/1h", &now)
	if err := unnamed.SetLimit(weir.MustParseLimit("20/1h")); !errors.Is(err, weir.ErrUnnamed) || unnamed.Limit().Count != 10 {
		t.Errorf("without a name: %v, then %v", err, unnamed.Limit())
	}
}

// TestSetLimitIsAnotherLimiterOfTheName: a limiter whose limit changes answers as limiters of one name, each of its own limit, do when they are asked in turn.
func TestSetLimitIsAnotherLimiterOfTheName(t *testing.T) {
	texts := []string{
		"10/1s", "20/1s", "gcra 3/1m burst=5", "leaky-queue 4/1s queue=6", "fixed-window 10/1s", "sliding-log 7/1s",
		"hybrid 10/2s", "concurrent 5 lease=2s", "concurrent 8 lease=1s",
	}
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_790_000_000, 0)
		one := weir.WithStore(memory.New(memory.Options{}))
		live := at(t, texts[0], &now, weir.WithName("plan"))
		models := map[string]*weir.Limiter{}
		for _, text := range texts {
			models[text] = at(t, text, &now, weir.WithName("plan"), one)
		}
		model := models[texts[0]]
		var reserved [][2]*weir.Reservation
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 700).Draw(rt, "ms")) * time.Millisecond)
			cost := rapid.Int64Range(0, 9).Draw(rt, "cost")
			var got, want any
			switch rapid.SampledFrom([]string{"set", "take", "up to", "refund", "reserve", "cancel", "all"}).Draw(rt, "do") {
			case "set":
				text := rapid.SampledFrom(texts).Draw(rt, "limit")
				setLimit(t, live, text)
				model = models[text]
			case "take":
				got, want = answer(live.Take(background, "k", cost)), answer(model.Take(background, "k", cost))
			case "up to":
				_, d, err := live.TakeUpTo(background, "k", cost)
				_, e, wrong := model.TakeUpTo(background, "k", cost)
				got, want = answer(d, err), answer(e, wrong)
			case "refund":
				got, want = answer(live.Refund(background, "k", cost)), answer(model.Refund(background, "k", cost))
			case "reserve":
				r, err := live.Reserve(background, "k", cost)
				s, wrong := model.Reserve(background, "k", cost)
				reserved = append(reserved, [2]*weir.Reservation{r, s})
				got, want = answer(r.Decision, err), answer(s.Decision, wrong)
			case "cancel":
				if len(reserved) > 0 {
					pair := reserved[len(reserved)-1]
					reserved = reserved[:len(reserved)-1]
					got, want = pair[0].Cancel(background), pair[1].Cancel(background)
				}
			case "all":
				d, _, err := weir.TakeAll(background, weir.Charge{Limiter: live, Key: "k", Cost: cost}, weir.Charge{Limiter: live, Key: "k", Cost: 1})
				e, _, wrong := weir.TakeAll(background, weir.Charge{Limiter: model, Key: "k", Cost: cost}, weir.Charge{Limiter: model, Key: "k", Cost: 1})
				got, want = answer(d, err), answer(e, wrong)
			}
			if got != want {
				rt.Fatalf("%v: %v, want %v", live.Limit(), got, want)
			}
		}
		if got, want := answer(live.Peek(background, "k")), answer(model.Peek(background, "k")); got != want {
			rt.Fatalf("at the end %v, want %v", got, want)
		}
	})
}

func answer(d weir.Decision, err error) string { return fmt.Sprintf("%+v %v", d, err) }

// TestSetLimitMeanwhile: while the limit goes to and fro, no more is admitted than the larger admits, no decision is of both, and no operation fails.
func TestSetLimitMeanwhile(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "300/1h", &now, weir.WithName("plan"))
	var kept atomic.Int64
	fine := func(d weir.Decision, err error) bool {
		if err != nil || d.Limit != 300 && d.Limit != 600 || d.Remaining > d.Limit {
			t.Errorf("%+v, %v", d, err)
		}
		return d.Allowed
	}
	charges := slices.Repeat([]weir.Charge{{Limiter: l, Key: "k", Cost: 1}}, 500) // are one
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				setLimit(t, l, []string{"600/1h", "300/1h"}[i%2])
			}
		}
	})
	together(4, func(int) {
		for range 200 {
			if fine(l.Take(background, "k", 1)) {
				kept.Add(1)
			}
			fine(l.Peek(background, "other"))
			if d, _, err := weir.TakeAll(background, charges...); fine(d, err) {
				kept.Add(1)
			}
			if r, err := l.Reserve(background, "k", 2); fine(r.Decision, err) {
				if err := r.Cancel(background); err != nil {
					t.Error(err)
				}
			}
			if h, err := l.Hold(background, "k", 2, time.Minute); fine(h.Decision, err) {
				fine(h.Commit(background, 1))
				kept.Add(1)
			}
		}
	})
	close(stop)
	changing.Wait()
	setLimit(t, l, "600/1h")
	if n, rest := kept.Load(), left(t, l); n > 600 || n+rest != 600 {
		t.Errorf("%d were admitted and %d are left, want 600 together", n, rest)
	}
}

// TestSettledAfterTheLimitWasSet: what was reserved or held before is given back after.
func TestSettledAfterTheLimitWasSet(t *testing.T) {
	for _, next := range []string{"100/1h", "fixed-window 50/1h", "sliding-log 20/1m", "leaky-queue 100/1h queue=99", "concurrent 20 lease=1m"} {
		now := time.Unix(1_790_000_000, 0)
		l := at(t, "10/1h", &now, weir.WithName("plan"))
		r, err := l.Reserve(background, "k", 4)
		if err != nil || !r.Allowed {
			t.Fatal(r, err)
		}
		h, err := l.Hold(background, "k", 4, time.Minute)
		if err != nil || !h.Allowed {
			t.Fatal(h, err)
		}
		setLimit(t, l, next)
		before := left(t, l)
		if d, err := h.Commit(background, 1); err != nil || !d.Allowed || d.Remaining != before+3 || d.Limit != l.Limit().Capacity() {
			t.Errorf("%s: with %d left, 3 of 4 were given back: %+v, %v", next, before, d, err)
		}
		if err := r.Cancel(background); err != nil || left(t, l) != before+7 {
			t.Errorf("%s: %v, and %d left; want %d", next, err, left(t, l), before+7)
		}
	}
}

// TestLeasesOutliveALowering: whoever is in flight stays so, renews, and counts, and nobody else begins until there is room again.
func TestLeasesOutliveALowering(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "concurrent 3 lease=10s", &now, weir.WithName("jobs"))
	var jobs [3]*weir.Reservation
	for i := range jobs {
		var err error
		if jobs[i], err = l.Reserve(background, "k", 1); err != nil || !jobs[i].Allowed {
			t.Fatal(jobs[i], err)
		}
		now = now.Add(time.Millisecond)
	}
	setLimit(t, l, "concurrent 1 lease=10s")
	for range 5 {
		now = now.Add(8 * time.Second)
		for i, job := range jobs {
			if d, err := job.Renew(background); err != nil || !d.Allowed {
				t.Fatalf("job %d: %+v, %v", i, d, err)
			}
			now = now.Add(time.Millisecond)
		}
		if d := takeAt(t, l, 1, now); d.Allowed {
			t.Fatalf("one more: %+v", d)
		}
	}
	for i, job := range jobs {
		if d := takeAt(t, l, 1, now); d.Allowed {
			t.Fatalf("one more while %d are in flight: %+v", len(jobs)-i, d)
		}
		if err := job.Cancel(background); err != nil {
			t.Fatal(err)
		}
	}
	if d := takeAt(t, l, 1, now); !d.Allowed {
		t.Errorf("with none in flight: %+v", d)
	}
}

func TestLeaseIsOfTheLimitThatGaveIt(t *testing.T) {
	l := limiter(t, "concurrent 1 lease=10s", weir.WithName("jobs"))
	lease := func(want time.Duration) {
		t.Helper()
		r, err := l.Reserve(background, "k", 1)
		if err != nil {
			t.Fatal(err)
		}
		setLimit(t, l, "concurrent 1 lease=1m")
		if got := r.Lease(); got != want {
			t.Errorf("the lease is %v, want %v", got, want)
		}
	}
	lease(10 * time.Second)
	lease(0) // it was denied
	setLimit(t, l, "10/1s")
	lease(0)
}

// TestSetLimitToTheSameIsNothing: who waits goes on waiting for as long.
func TestSetLimitToTheSameIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := limiter(t, "1/1m", weir.WithName("plan")), time.Now()
		l.Take(t.Context(), "k", 1)
		done := make(chan error)
		go func() { done <- l.Wait(t.Context(), "k", 1) }()
		synctest.Wait()
		setLimit(t, l, "token-bucket 1/60s burst=1")
		if err := <-done; err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
