package harness

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Timing is the result of one run of a workload.
type Timing struct {
	// Requests were made; Admitted and Denied are those with these decisions.
	Requests, Admitted, Denied int64
	// Nanoseconds is the time that passed for one request: that of the run by the requests of all
	// goroutines.
	Nanoseconds float64
	// Processor is the processor time for one request in nanoseconds, of all that ran in the
	// process, the garbage collector too. Allocs and Bytes are the allocations for one request.
	Processor, Allocs, Bytes float64
}

// Measure runs f after a garbage collection.
func Measure(f func() Timing) Timing {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, start := Processor(), time.Now()
	t := f()
	elapsed, used := time.Since(start), Processor()-used
	runtime.ReadMemStats(&after)
	n := float64(t.Requests)
	t.Nanoseconds, t.Processor = float64(elapsed)/n, float64(used)/n
	t.Allocs, t.Bytes = float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n
	return t
}

// Drive makes requests for d, from one goroutine or from one for each core. Each begins at another
// of n places.
func Drive(cores bool, n int, d time.Duration, work func(first int, end time.Time) Timing) Timing {
	workers := 1
	if cores {
		workers = runtime.GOMAXPROCS(0)
	}
	parts := make([]Timing, workers)
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range parts {
		wg.Go(func() { parts[i] = work(n/workers*i, end) })
	}
	wg.Wait()
	return Sum(parts)
}

// Sum adds the numbers of requests.
func Sum(parts []Timing) (t Timing) {
	for _, p := range parts {
		t.Requests += p.Requests
		t.Admitted += p.Admitted
		t.Denied += p.Denied
	}
	return t
}

// Processor returns the processor time that this process has used, in user and kernel mode.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
