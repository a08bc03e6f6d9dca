package engines

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/load"
)

// A slot is one measurement.
type slot harness.Slot

// A result is what one slot found.
type result struct {
	// Requests is how many were made, Failed how many of them ended in an error, Admitted how many passed.
	Requests, Failed, Admitted int64
	// Problem is the first of the errors.
	Problem string
	// Seconds is how long it took.
	Seconds float64
	// Median and Late are the latency that half and 99 % of the requests stayed below, in microseconds.
	Median, Late float64
	// Client is the processor seconds that the load's process used.
	Client float64
	// Server is the processor seconds that Redis used, 0 where the engine is another.
	Server float64
	// Calls is how often Redis carried out each command, inside scripts too.
	Calls map[string]int64
}

// decided is how many requests got an answer.
func (r result) decided() float64 { return float64(r.Requests - r.Failed) }

// measure carries out one slot.
func measure(ctx context.Context, s harness.Slot) (any, error) { return slot(s).run(ctx) }

func (s slot) run(ctx context.Context) (result, error) {
	c, err := harness.Find("contender", s.Contender, contenders())
	if err != nil {
		return result{}, err
	}
	w, err := harness.Find("workload", s.Workload, workloads())
	if err != nil {
		return result{}, err
	}
	l, end, err := c.open(ctx, c.url(s.Address), w.budget)
	if end != nil {
		defer end()
	}
	if err != nil {
		return result{}, fmt.Errorf("opening %s: %w", c.name, err)
	}
	if s.Fill {
		return result{}, fill(ctx, l, load.Each(s.Keys), s.Goroutines)
	}
	stream := w.stream(s.Keys)
	if _, err := l.Allow(ctx, stream.Key(0)); err != nil { // spends the budget of the denied
		return result{}, fmt.Errorf("first request of %s: %w", c.name, err)
	}
	s.drive(ctx, l, stream, s.Time/5)
	return s.measure(ctx, c, l, stream)
}

func (s slot) measure(ctx context.Context, c contender, l limiter, stream load.Stream) (result, error) {
	w, err := watch(c, s.Address)
	if err != nil {
		return result{}, err
	}
	defer w.close()
	stop, err := harness.Slot(s).StartProfile()
	if err != nil {
		return result{}, err
	}
	runtime.GC()
	before, err := w.look(ctx)
	if err != nil {
		return result{}, err
	}
	used := harness.Processor()
	r := s.drive(ctx, l, stream, s.Time)
	r.Client = (harness.Processor() - used).Seconds()
	stop()
	after, err := w.look(ctx)
	r.Server, r.Calls = after.seconds-before.seconds, after.less(before)
	return r, err
}

// drive makes requests from so many goroutines, each from a place of its own in the stream, until the time is over.
func (s slot) drive(ctx context.Context, l limiter, stream load.Stream, d time.Duration) result {
	parts := make([]part, s.Goroutines)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range parts {
		wg.Go(func() { parts[i].work(ctx, l, stream, stream.Len()/s.Goroutines*i, start.Add(d)) })
	}
	wg.Wait()
	r := result{Seconds: time.Since(start).Seconds()}
	var took []time.Duration
	for _, p := range parts {
		r.Requests += int64(len(p.took))
		r.Failed += p.failed
		r.Admitted += p.admitted
		if p.problem != nil && r.Problem == "" {
			r.Problem = p.problem.Error()
		}
		took = append(took, p.took...)
	}
	slices.Sort(took)
	r.Median, r.Late = quantile(took, 0.5), quantile(took, 0.99)
	return r
}

// A part is what one goroutine did.
type part struct {
	took             []time.Duration
	failed, admitted int64
	problem          error
}

func (p *part) work(ctx context.Context, l limiter, stream load.Stream, at int, end time.Time) {
	for begun := time.Now(); begun.Before(end); at++ {
		if at >= stream.Len() {
			at = 0
		}
		ok, err := l.Allow(ctx, stream.Key(at))
		if err != nil {
			p.failed++
			p.problem = err
		}
		if ok {
			p.admitted++
		}
		now := time.Now()
		p.took = append(p.took, now.Sub(begun))
		begun = now
	}
}

// quantile returns the value below which the part q of the sorted durations lies, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]) / 1000
}

// fill asks once for each key of the stream.
func fill(ctx context.Context, l limiter, stream load.Stream, goroutines int) error {
	var wg sync.WaitGroup
	problems := make([]error, goroutines)
	for i := range goroutines {
		wg.Go(func() {
			for at := i; at < stream.Len() && problems[i] == nil; at += goroutines {
				_, problems[i] = l.Allow(ctx, stream.Key(at))
			}
		})
	}
	wg.Wait()
	return errors.Join(problems...)
}
