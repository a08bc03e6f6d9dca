package main

import (
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A timing is what one run of a workload took.
type timing struct {
	// Requests is how many were made, Admitted and Denied how many of them were answered with 204 and 429.
	Requests, Admitted, Denied int64
	// Nanoseconds is the time that passed for one request: that of the run by the requests of all goroutines.
	Nanoseconds float64
	// Processor is the processor time for one request, in nanoseconds, of everything that ran in the process meanwhile, the garbage collector too; Allocs and Bytes
	// are what it allocated.
	Processor, Allocs, Bytes float64
}

func (t *timing) add(u timing) {
	t.Requests += u.Requests
	t.Admitted += u.Admitted
	t.Denied += u.Denied
}

func (t *timing) count(status int) {
	t.Requests++
	switch status {
	case http.StatusNoContent:
		t.Admitted++
	case http.StatusTooManyRequests:
		t.Denied++
	}
}

// measured runs f after a garbage collection, and says what it took.
func measured(f func() timing) timing {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, start := processor(), time.Now()
	t := f()
	elapsed, used := time.Since(start), processor()-used
	runtime.ReadMemStats(&after)
	n := float64(t.Requests)
	t.Nanoseconds, t.Processor = float64(elapsed)/n, float64(used)/n
	t.Allocs, t.Bytes = float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n
	return t
}

// processor returns the processor time that this process has used, in user and kernel mode.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// chunk is how many requests are made between two looks at the clock.
const chunk = 256

// ask makes requests for d.
func (w workload) ask(h http.Handler, t traffic, d time.Duration) timing {
	workers := 1
	if w.Cores {
		workers = runtime.GOMAXPROCS(0)
	}
	parts := make([]timing, workers)
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range parts {
		wg.Go(func() { parts[i] = work(h, t, t.len()/workers*i, end) })
	}
	wg.Wait()
	var sum timing
	for _, p := range parts {
		sum.add(p)
	}
	return sum
}

// work makes requests from the index first on, until the end, a chunk at least.
func work(h http.Handler, t traffic, first int, end time.Time) timing {
	c, cancel := newCaller(h)
	defer cancel()
	var sum timing
	for at := first - first%chunk; ; at += chunk {
		if at+chunk > t.len() {
			at = 0
		}
		for i := range chunk {
			sum.count(c.call(t.addr(at + i)))
		}
		if !time.Now().Before(end) {
			return sum
		}
	}
}
