package memory

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock tells nanoseconds since the Unix epoch, as the wall clock had it when the store was made and the
// monotonic clock has counted since: it never steps.
type clock struct {
	base   time.Time
	start  int64
	coarse *coarseTime // nil: the operating system's
	stop   func()      // of coarse
}

func newClock(resolution time.Duration) clock {
	base := time.Now()
	c := clock{base: base, start: base.UnixNano()}
	if resolution > 0 {
		c.coarse, c.stop = startCoarse(c, min(max(resolution, 10*time.Microsecond), time.Second))
	}
	return c
}

// now is small, and inlined.
func (c *clock) now() int64 {
	if c.coarse != nil {
		return c.coarse.value.Load()
	}
	return c.start + int64(time.Since(c.base))
}

func (c *clock) close() {
	if c.stop != nil {
		c.stop()
	}
}

// coarseTime is a time that costs one load to read.
type coarseTime struct {
	value atomic.Int64
	_     [56]byte
}

// startCoarse returns a time that a goroutine sets, and what ends the goroutine.
func startCoarse(c clock, resolution time.Duration) (*coarseTime, func()) {
	t, done := new(coarseTime), make(chan struct{})
	t.value.Store(c.now())
	go func() {
		ticker := time.NewTicker(resolution)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				t.value.Store(c.now())
			case <-done:
				return
			}
		}
	}()
	return t, sync.OnceFunc(func() { close(done) })
}
