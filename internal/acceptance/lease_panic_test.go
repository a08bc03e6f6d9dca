package acceptance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
)

// A panic of a store in the background does not end the program: a renewal is tried again, as after
// an error. A panic of Acquire is the caller's.
func TestPanicsOfAStoreUnderLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGatedStore()
		l := limiter(t, "concurrent 1 lease=30s", weir.WithStore(s))
		lease := acquire(t, l, 1)
		panicking := func(algorithm.Op) error { panic("the store") }
		s.set(panicking)
		time.Sleep(15 * time.Second)
		s.set(nil)
		time.Sleep(time.Minute)
		release(t, lease)
		if n := free(t, l); n != 1 {
			t.Errorf("%d places are free, want 1", n)
		}
		s.set(panicking)
		defer func() {
			if recover() == nil {
				t.Error("Acquire did not panic")
			}
		}()
		_, _ = l.Acquire(t.Context(), "k", 1)
	})
}
