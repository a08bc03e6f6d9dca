package weir

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/store"
)

// lines are the queues of those who wait, one for each key that has any.
type lines struct {
	mu      sync.Mutex
	byKey   map[string]*line
	changed bool // whether the limit ever has
}

type line struct {
	waiters []*waiter // to be admitted; the first one asks the store
	slots   []*slot   // admitted, and waiting for their slot, by its time
	unsure  int       // how many of the waiters are undecided
	last    place     // of the last slot that started, once the limit has changed: it has perhaps not had its time
}

// A waiter stands in line to be admitted. Those in a line decide one after another whether they stay in it, so that none counts one ahead of it who is about
// to leave: who comes, when those ahead have decided, and all anew when the limit changes.
type waiter struct {
	cost      int64
	acquire   bool          // is for a place of a concurrent limit
	first     chan struct{} // closed when it is first in line
	again     chan struct{} // has a signal when it should ask, or decide, at once
	undecided bool          // has yet to decide, or is just asking the store
	failed    error         // the store's last failure, for a waiter of the key; nil: none
	failedAt  time.Time
}

// at returns the key's line, which it makes if there is none. The caller holds the mutex.
func (ls *lines) at(key string) *line {
	n := ls.byKey[key]
	if n == nil {
		if ls.byKey == nil {
			ls.byKey = map[string]*line{}
		}
		n = &line{}
		ls.byKey[key] = n
	}
	return n
}

// tidy forgets the key's line if nobody is in it. The caller holds the mutex.
func (ls *lines) tidy(key string, n *line) {
	if len(n.waiters) == 0 && len(n.slots) == 0 && !time.Now().Before(n.last.over()) {
		delete(ls.byKey, key)
	}
}

func (ls *lines) join(key string, cost int64, acquire bool) *waiter {
	w := &waiter{cost: cost, acquire: acquire, first: make(chan struct{}), again: make(chan struct{}, 1)}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	if n.waiters = append(n.waiters, w); len(n.waiters) == 1 {
		close(w.first)
	}
	n.mark(w, true)
	n.next()
	return w
}

// next tells the first one that is undecided that it is its time to decide. The first in line needs no telling. The caller holds the mutex.
func (n *line) next() {
	if n.unsure == 0 {
		return
	}
	i := len(n.waiters) - 1
	if n.unsure > 1 || !n.waiters[i].undecided { // a long line is not searched for the one who comes
		i = slices.IndexFunc(n.waiters, func(w *waiter) bool { return w.undecided })
	}
	if i > 0 {
		signal(n.waiters[i].again)
	}
}

// mark notes whether a waiter is undecided. The caller holds the mutex.
func (n *line) mark(w *waiter, undecided bool) {
	if w.undecided != undecided {
		w.undecided = undecided
		if undecided {
			n.unsure++
		} else {
			n.unsure--
		}
	}
}

// leave takes the waiter out of its line, admitted or not, and lets the next one be first.
func (ls *lines) leave(key string, w *waiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	i := slices.Index(n.waiters, w)
	n.waiters = slices.Delete(n.waiters, i, i+1)
	if i == 0 && len(n.waiters) > 0 {
		close(n.waiters[0].first)
	}
	n.mark(w, false)
	n.next()
	ls.tidy(key, n)
}

// ahead returns the costs of those in line up to the waiter, its own last. It leaves out those that are undecided, and says whether there are none: else
// they will tell this one to decide again. Costs that are too large to pass are of those who decided under another limit.
func (ls *lines) ahead(key string, w *waiter, capacity int64) (costs []int64, all bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all = true
	for _, other := range ls.at(key).waiters {
		if other == w {
			break
		}
		if other.undecided {
			all = false
		} else if other.cost <= capacity {
			costs = append(costs, other.cost)
		}
	}
	return append(costs, w.cost), all
}

// undecided reports whether the waiter has to decide.
func (ls *lines) undecided(w *waiter) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return w.undecided
}

// asks notes that the first in line asks the store, which may have charged its cost while it is still in line.
func (ls *lines) asks(key string, w *waiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.at(key).mark(w, true)
}

// stays notes that the waiter has decided, under a limit, to stay in line. If the limit has changed since, it decides again.
func (l *Limiter) stays(key string, w *waiter, b *store.Bound) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if l.bound.Load() == b {
		n := l.lines.at(key)
		n.mark(w, false)
		n.next()
	}
}

// changed makes all in line decide anew, from the first on. The caller holds the mutex.
func (n *line) changed() {
	for _, w := range n.waiters {
		n.mark(w, true)
	}
	if len(n.waiters) > 0 {
		signal(n.waiters[0].again)
	}
}

// stir makes the first in line ask again at once: units came back.
func (ls *lines) stir(key string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if n := ls.byKey[key]; n != nil && len(n.waiters) > 0 {
		signal(n.waiters[0].again)
	}
}

// failTime is for how long the failure of one waiter's call is that of all waiters of the key.
const failTime = time.Second

// fail wakes all waiters of the key except one, which may be nil, after the store failed. It does
// nothing if ctx has ended: then the store may be well.
func (ls *lines) fail(ctx context.Context, key string, except *waiter, err error) {
	if ctx.Err() != nil || !store.IsFailure(ctx, err) {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if n := ls.byKey[key]; n != nil {
		for _, w := range n.waiters {
			if w != except {
				w.failed, w.failedAt = err, time.Now()
				signal(w.again)
			}
		}
	}
}

// failure returns the store's failure for another waiter just now, or nil.
func (ls *lines) failure(w *waiter) error {
	if w == nil {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w.failed != nil && time.Since(w.failedAt) >= failTime {
		w.failed = nil
	}
	return w.failed
}

// signal leaves a signal, if there is none yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
