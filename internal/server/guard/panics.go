package guard

import (
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"time"
)

// Panics logs and counts the panics of the daemon's goroutines, which would otherwise end the
// process and lose its state in memory. It may be used by many goroutines at once.
type Panics struct {
	log    *slog.Logger
	mu     sync.Mutex
	counts map[string]int64
	sample map[string]*Sampler
}

// NewPanics returns a Panics that logs to log, at level error, with the stack, and for each task at
// most once in ten seconds. Nil: it only counts.
func NewPanics(log *slog.Logger) *Panics {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Panics{log: log, counts: map[string]int64{}, sample: map[string]*Sampler{}}
}

// Safe returns f with its panics recovered.
func (p *Panics) Safe(task string, f func()) func() {
	return func() {
		defer p.Recover(task)
		f()
	}
}

// Recover is for a defer statement. It recovers from a panic of the task.
func (p *Panics) Recover(task string) { p.Caught(task, recover()) }

// Caught logs and counts the result of a recover, which is nil without a panic. It reports whether
// there was a panic.
func (p *Panics) Caught(task string, value any) bool {
	if value == nil {
		return false
	}
	if n, pass := p.count(task); pass {
		p.log.Error("panic", "task", task, "panic", fmt.Sprint(value), "total", n, "stack", string(debug.Stack()))
	}
	return true
}

// count counts a panic. It returns the number of panics of the task, and whether to log this panic.
func (p *Panics) count(task string) (n int64, pass bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sample[task] == nil {
		p.sample[task] = new(Sampler)
	}
	p.counts[task]++
	return p.counts[task], p.sample[task].Pass(time.Now())
}

// Counts returns the number of panics by task, without tasks without panics.
func (p *Panics) Counts() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}
