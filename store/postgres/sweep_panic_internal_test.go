package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A panic ends a walk of the sweeper, and no more: it is counted, and the next walk begins.
func TestSweeperOutlivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{} // without a pool, which panics
		s := newSweeper(e, Options{SweepEvery: time.Minute}, closedBreaker)
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute+time.Second)
		defer stop()
		s.run(ctx)
		if n := e.failures.Load(); n != 3 {
			t.Errorf("%d walks are counted as failed, want 3", n)
		}
	})
}
