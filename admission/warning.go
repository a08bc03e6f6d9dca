package admission

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/store"
)

// What is warned of, each at most once a second: while a store is away, every request fails.
const (
	undecided = iota
	unsettled
	unrenewed
	negative
	warnings
)

// A warning knows when it was last logged, and how often it was not since.
type warning struct{ second, left atomic.Int64 }

// warn logs an error. It says nothing of the request.
func (g *Gate) warn(which int, message string, err error) {
	w := &g.warned[which]
	now, last := time.Now().Unix(), w.second.Load()
	if now == last || !w.second.CompareAndSwap(last, now) {
		w.left.Add(1)
		return
	}
	log := g.opts.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn(message, "error", store.WithoutKeys(err), "not_logged", w.left.Swap(0))
}
