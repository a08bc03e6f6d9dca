package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// clock tells nanoseconds since the Unix epoch, as the wall clock had it when the store was made and the
// monotonic clock has counted since: it never steps.
type clock struct {
	base   time.Time
	start  int64
	coarse *coarseClock
}

func newClock(resolution time.Duration) clock {
	base := time.Now()
	c := clock{base: base, start: base.UnixNano()}
	if resolution > 0 {
		c.coarse = startCoarseClock(c, min(max(resolution, 10*time.Microsecond), time.Second))
	}
	return c
}

func (c *clock) now() int64 {
	if c.coarse != nil {
		return c.coarse.time.value.Load()
	}
	return c.start + int64(time.Since(c.base))
}

func (c *clock) close() {
	if c.coarse != nil {
		c.coarse.stop()
	}
}

// coarseClock is a clock that costs one load to read.
type coarseClock struct {
	time *coarseTime
	stop func()
}

// coarseTime is apart from coarseClock so that the goroutine that sets it does not keep the clock alive.
type coarseTime struct {
	value atomic.Int64
	_     [56]byte
}

func startCoarseClock(c clock, resolution time.Duration) *coarseClock {
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
	coarse := &coarseClock{time: t, stop: sync.OnceFunc(func() { close(done) })}
	runtime.AddCleanup(coarse, func(stop func()) { stop() }, coarse.stop)
	return coarse
}
