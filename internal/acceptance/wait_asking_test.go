package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// What happens while the store is asked.

// TestWhoIsAdmittedIsCountedOnce: who comes while the answer to the first in line is on its way does not count it both in line and as what is used.
func TestWhoIsAdmittedIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hooked{Store: memory.New(memory.Options{})}
		l, queued := limiter(t, "2/10s", weir.WithStore(s)), newCrowd(3)
		takes(t, l, 2)
		queued.wait(t.Context(), l, 0, 1)
		time.Sleep(time.Second)
		s.after.set(func() { // at 5 s
			queued.wait(until(t, 6*time.Second), l, 1, 1)
			queued.wait(until(t, 6*time.Second), l, 2, 1)
			var above *weir.CapacityError
			if err := l.Wait(t.Context(), "k", 3); !errors.As(err, &above) {
				t.Errorf("more than there ever is: %v", err)
			}
		})
		queued.group.Wait()
		if queued.errs[1] != nil || queued.passed[1] != 10*time.Second {
			t.Errorf("%v at %v, want it to pass at 10s", queued.errs[1], queued.passed[1])
		}
		if !errors.Is(queued.errs[2], context.DeadlineExceeded) || queued.passed[2] != 5*time.Second {
			t.Errorf("%v at %v, want it to be hopeless at 5s", queued.errs[2], queued.passed[2])
		}
	})
}

// TestTheFirstAsksWhileAnotherLooks: the first in line begins to ask while one behind it is about to look at the state.
func TestTheFirstAsksWhileAnotherLooks(t *testing.T) {
	begin := func(t *testing.T) (*hooked, *weir.Limiter, *crowd) {
		s := &hooked{Store: memory.New(memory.Options{})}
		l, queued := limiter(t, "1/10s", weir.WithStore(s)), newCrowd(2)
		takes(t, l, 1)
		queued.wait(t.Context(), l, 0, 1)
		time.Sleep(time.Second)
		return s, l, queued
	}
	second := func() { time.Sleep(time.Second) }
	t.Run("and is admitted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, l, queued := begin(t)
			time.Sleep(8500 * time.Millisecond)
			s.looking.set(second)
			s.after.set(second)                            // to 10.5 s, and to 11 s
			queued.wait(until(t, 12*time.Second), l, 1, 1) // at 20 s
			queued.group.Wait()
			if queued.errs[1] != nil || queued.passed[1] != 20*time.Second {
				t.Errorf("%v at %v, want it to pass at 20s", queued.errs[1], queued.passed[1])
			}
		})
	})
	t.Run("and is denied", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, l, queued := begin(t)
			s.looking.set(second)                          // to 2 s
			queued.wait(until(t, 12*time.Second), l, 1, 1) // not before 20 s
			time.Sleep(500 * time.Millisecond)
			s.after.set(second)                                      // to 2.5 s
			if _, err := l.Refund(t.Context(), "k", 0); err != nil { // makes the first ask
				t.Fatal(err)
			}
			queued.group.Wait()
			if !errors.Is(queued.errs[1], context.DeadlineExceeded) || queued.passed[1] != 2500*time.Millisecond {
				t.Errorf("%v at %v, want it to be hopeless at 2.5s", queued.errs[1], queued.passed[1])
			}
		})
	})
}

// W3: a limit that is raised while it is found out that a wait is hopeless gives hope.
func TestPitfallW3RaisedWhileGivingUp(t *testing.T) {
	t.Run("looking", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &hooked{Store: memory.New(memory.Options{})}
			l, queued := limiter(t, "1/1m", weir.WithName("plan"), weir.WithStore(s)), newCrowd(2)
			takes(t, l, 1)
			queued.wait(t.Context(), l, 0, 1)
			s.looked.set(func() { setLimit(t, l, "1/1s") })
			queued.wait(until(t, 10*time.Second), l, 1, 1)
			queued.group.Wait()
			if queued.errs[1] != nil || queued.passed[1] != 2*time.Second {
				t.Errorf("%v at %v, want it to pass at 2s", queued.errs[1], queued.passed[1])
			}
		})
	})
	t.Run("asking", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &hooked{Store: memory.New(memory.Options{})}
			l, queued := limiter(t, "2/2m", weir.WithName("plan"), weir.WithStore(s)), newCrowd(1)
			takes(t, l, 1)
			s.looked.set(func() {
				takes(t, l, 1) // what the one who waits has just seen
				s.after.set(func() { setLimit(t, l, "2/2s") })
			})
			queued.wait(until(t, 10*time.Second), l, 0, 1)
			queued.group.Wait()
			if queued.errs[0] != nil || queued.passed[0] != time.Second {
				t.Errorf("%v at %v, want it to pass at 1s", queued.errs[0], queued.passed[0])
			}
		})
	})
}
