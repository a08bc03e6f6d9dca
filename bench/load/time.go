package load

import (
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/peer"
)

// chunk is how many requests are made between two looks at the clock.
const chunk = 512

// batchSize is how many keys a Batcher is given at once.
const batchSize = 32

// Run builds the peer's limiter, fills it, warms it up for a fifth of d and times it for d.
func (w Workload) Run(p peer.Peer, d time.Duration) (harness.Timing, error) {
	l, err := p.New(w.budget)
	if err != nil {
		return harness.Timing{}, err
	}
	if w.Filled {
		fill(l, Each(Keys))
	}
	s := w.stream()
	l.Allow(s.Key(0))
	run := func(d time.Duration) harness.Timing {
		return harness.Drive(w.Cores, s.Len(), d, func(first int, end time.Time) harness.Timing { return work(l, s, first, end) })
	}
	run(d / 5)
	return harness.Measure(func() harness.Timing { return run(d) }), nil
}

func fill(l peer.Limiter, s Stream) {
	for i := range s.Len() {
		l.Allow(s.Key(i))
	}
}

// work makes requests from the index first on, until the end, a chunk at least.
func work(l peer.Limiter, s Stream, first int, end time.Time) harness.Timing {
	step := one(l)
	if b, ok := l.(peer.Batcher); ok {
		step = batches(b)
	}
	var t harness.Timing
	for at := first - first%chunk; ; at += chunk {
		if at+chunk > s.Len() {
			at = 0
		}
		t.Admitted += step(s[at*KeyBytes : (at+chunk)*KeyBytes])
		t.Requests += chunk
		if !time.Now().Before(end) {
			t.Denied = t.Requests - t.Admitted
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
