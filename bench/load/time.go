package load

import (
	"runtime"
	"sync"
	"time"

	"github.com/weirlimit/weir/bench/peer"
)

// A Timing is what one run of a workload took.
type Timing struct {
	// Requests is how many were made, Admitted how many of them passed.
	Requests, Admitted int64
	// Nanoseconds is the time for one request: on all cores, the time of the run by the requests of all.
	Nanoseconds float64
	// Allocs and Bytes are what one request allocated, by everything that ran in the process meanwhile.
	Allocs, Bytes float64
}

// chunk is how many requests are made between two looks at the clock.
const chunk = 512

// batchSize is how many keys a Batcher is given at once.
const batchSize = 32

// Run builds the peer's limiter, fills it, warms it up for a fifth of d and times it for d.
func (w Workload) Run(p peer.Peer, d time.Duration) (Timing, error) {
	l, err := p.New(w.budget)
	if err != nil {
		return Timing{}, err
	}
	if w.Filled {
		fill(l, Each(Keys))
	}
	s := w.stream()
	l.Allow(s.Key(0))
	w.run(l, s, d/5)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	t := w.run(l, s, d)
	runtime.ReadMemStats(&after)
	t.Allocs = float64(after.Mallocs-before.Mallocs) / float64(t.Requests)
	t.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(t.Requests)
	return t, nil
}

func fill(l peer.Limiter, s Stream) {
	for i := range s.Len() {
		l.Allow(s.Key(i))
	}
}

func (w Workload) run(l peer.Limiter, s Stream, d time.Duration) Timing {
	workers := 1
	if w.Cores {
		workers = runtime.GOMAXPROCS(0)
	}
	parts := make([]Timing, workers)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range parts {
		wg.Go(func() { parts[i] = work(l, s, s.Len()/workers*i, start.Add(d)) })
	}
	wg.Wait()
	elapsed := time.Since(start)
	var t Timing
	for _, p := range parts {
		t.Requests += p.Requests
		t.Admitted += p.Admitted
	}
	t.Nanoseconds = float64(elapsed) / float64(t.Requests)
	return t
}

// work makes requests from the index first on, until the end, a chunk at least.
func work(l peer.Limiter, s Stream, first int, end time.Time) Timing {
	step := one(l)
	if b, ok := l.(peer.Batcher); ok {
		step = batches(b)
	}
	var t Timing
	for at := first - first%chunk; ; at += chunk {
		if at+chunk > s.Len() {
			at = 0
		}
		t.Admitted += step(s[at*KeyBytes : (at+chunk)*KeyBytes])
		t.Requests += chunk
		if !time.Now().Before(end) {
			return t
		}
	}
}

func one(l peer.Limiter) func(Stream) int64 {
	return func(s Stream) int64 {
		var n int64
		for i := 0; i+KeyBytes <= len(s); i += KeyBytes {
			if l.Allow(string(s[i : i+KeyBytes])) {
				n++
			}
		}
		return n
	}
}

func batches(b peer.Batcher) func(Stream) int64 {
	decide, keys := b.Batch(), make([]string, batchSize)
	return func(s Stream) int64 {
		var n int64
		for i := 0; i < s.Len(); i += batchSize {
			for j := range keys {
				keys[j] = s.Key(i + j)
			}
			n += int64(decide(keys))
		}
		return n
	}
}
