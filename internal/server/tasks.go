package server

import (
	"context"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

// tasks run in the background until close, also after a panic.
type tasks struct {
	panics *guard.Panics
	ctx    context.Context //nolint:containedctx // of the tasks
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newTasks(panics *guard.Panics) *tasks {
	t := &tasks{panics: panics}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// followAgain is the time after which a task that ended is run again.
const followAgain = time.Second

// follow runs a task that ends with its context.
func (t *tasks) follow(name string, task func(context.Context) error) {
	t.done.Go(func() {
		for t.ctx.Err() == nil {
			t.panics.Safe(name, func() { _ = task(t.ctx) })() // its error is that of the context
			select {
			case <-t.ctx.Done():
			case <-time.After(followAgain):
			}
		}
	})
}

// every runs a task in each period, and at the end once more.
func (t *tasks) every(period time.Duration, name string, task func()) {
	t.done.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for t.ctx.Err() == nil {
			select {
			case <-t.ctx.Done():
			case <-ticker.C:
			}
			t.panics.Safe(name, task)()
		}
	})
}

// close ends the tasks.
func (t *tasks) close() {
	t.stop()
	t.done.Wait()
}
