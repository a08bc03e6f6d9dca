package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
)

func until(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// W3: when a limit is lowered, those in line decide one after another whether they can still pass: who is about to leave is not counted by those behind it.
func TestPitfallW3WhoLeavesDoesNotCount(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			l, queued := limiter(t, "10/10s", weir.WithName("plan")), newCrowd(4)
			takes(t, l, 10)
			queued.wait(until(t, time.Hour), l, 0, 1)      // at 9 s, when the units in use fit
			queued.wait(until(t, 25*time.Second), l, 1, 2) // not before 30.5 s
			queued.wait(until(t, 25*time.Second), l, 2, 1) // at 19 s
			queued.wait(until(t, 25*time.Second), l, 3, 1) // not before 30.5 s
			time.Sleep(500 * time.Millisecond)
			setLimit(t, l, "2/20s")
			queued.group.Wait()
			for i, want := range scaled([]int64{90, 5, 190, 5}, 100*time.Millisecond) {
				if queued.passed[i] != want || (queued.errs[i] == nil) != (i%2 == 0) {
					t.Errorf("%d: %v at %v, want it at %v", i, queued.errs[i], queued.passed[i], want)
				}
			}
		})
	}
}

// W2: of those who come at one time, too, nobody counts one who does not stay.
func TestPitfallW2WhoComesTogether(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			l, hopeless, fine := newLimiter(t, "1/10s"), newCrowd(9), newCrowd(9)
			takes(t, l, 1)
			for i := range 9 {
				hopeless.group.Go(func() { hopeless.errs[i] = l.Wait(until(t, 9*time.Second), "k", 1) })
				fine.group.Go(func() { fine.errs[i] = l.Wait(until(t, 91*time.Second), "k", 1) })
			}
			hopeless.group.Wait()
			if time.Since(hopeless.start) != 0 {
				t.Errorf("told after %v, want at once", time.Since(hopeless.start))
			}
			fine.group.Wait()
			for i := range 9 {
				if !errors.Is(hopeless.errs[i], context.DeadlineExceeded) || fine.errs[i] != nil {
					t.Errorf("hopeless: %v; in time: %v", hopeless.errs[i], fine.errs[i])
				}
			}
		})
	}
}

// TestLongLinesAreNotTriedToTheEnd: who is far behind in line is told at its deadline, and not at once.
func TestLongLinesAreNotTriedToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := newLimiter(t, "1/1s"), newCrowd(301)
		takes(t, l, 1)
		for i := range 300 {
			queued.wait(t.Context(), l, i, 1)
		}
		queued.wait(until(t, 290*time.Second), l, 300, 1)
		queued.group.Wait()
		if !errors.Is(queued.errs[300], context.DeadlineExceeded) || queued.passed[300] != 290*time.Second {
			t.Errorf("%v at %v", queued.errs[300], queued.passed[300])
		}
	})
}

// TestCostsAheadPassOneByOne: where units come back in lumps, those ahead of one who has a deadline are tried one by one.
func TestCostsAheadPassOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, queued := newLimiter(t, "sliding-log 10/10s"), newCrowd(3)
		takes(t, l, 5)
		time.Sleep(5 * time.Second)
		takes(t, l, 5)
		queued.start = time.Now()
		queued.wait(t.Context(), l, 0, 5)
		queued.wait(t.Context(), l, 1, 5)
		queued.wait(until(t, 16*time.Second), l, 2, 5)
		queued.group.Wait()
		for i, want := range scaled([]int64{5, 10, 15}, time.Second) {
			if queued.errs[i] != nil || queued.passed[i] != want {
				t.Errorf("%d: %v at %v, want it to pass at %v", i, queued.errs[i], queued.passed[i], want)
			}
		}
	})
}

// TestWhatComesBackWakesTheFirstInLine: the first in line asks at once when a reservation or a hold is cancelled, or settled at less. See TestRefundWakesTheFirstInLine.
func TestWhatComesBackWakesTheFirstInLine(t *testing.T) {
	for name, use := range map[string]func(*testing.T, *weir.Limiter) func() error{
		"reservation": func(t *testing.T, l *weir.Limiter) func() error {
			r, err := l.Reserve(t.Context(), "k", 5)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return r.Cancel(t.Context()) }
		},
		"hold": func(t *testing.T, l *weir.Limiter) func() error {
			h, err := l.Hold(t.Context(), "k", 5, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return h.Cancel(t.Context()) }
		},
		"settled hold": func(t *testing.T, l *weir.Limiter) func() error {
			h, err := l.Hold(t.Context(), "k", 5, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { _, err := h.Commit(t.Context(), 4); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, queued := limiter(t, "fixed-window 5/24h", weir.WithName("plan")), newCrowd(1)
				giveBack := use(t, l)
				queued.wait(t.Context(), l, 0, 1)
				time.Sleep(time.Minute)
				if err := giveBack(); err != nil {
					t.Fatal(err)
				}
				queued.group.Wait()
				if queued.errs[0] != nil || queued.passed[0] != time.Minute {
					t.Errorf("%v at %v, want it to pass at 1m", queued.errs[0], queued.passed[0])
				}
			})
		})
	}
}
