package weir

import (
	"slices"
	"sync"
)

// lines are the queues of those who wait, one for each key that has any.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

type line struct {
	waiters []*waiter // to be admitted; the first one asks the store
	turns   []*turn   // admitted to a leaky-queue, and waiting for their turn, by its time
}

// A waiter stands in line to be admitted.
type waiter struct {
	cost  int64
	first chan struct{} // closed when it is first in line
	again chan struct{} // has a signal when it should ask, or look, again at once
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
	if len(n.waiters) == 0 && len(n.turns) == 0 {
		delete(ls.byKey, key)
	}
}

func (ls *lines) join(key string, cost int64) *waiter {
	w := &waiter{cost: cost, first: make(chan struct{}), again: make(chan struct{}, 1)}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	if n.waiters = append(n.waiters, w); len(n.waiters) == 1 {
		close(w.first)
	}
	return w
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
	ls.tidy(key, n)
}

// ahead returns the costs of those in line up to the waiter, its own last, without those that are too large to pass: they are about to leave.
func (ls *lines) ahead(key string, w *waiter, capacity int64) (costs []int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, other := range ls.at(key).waiters {
		if other.cost <= capacity {
			costs = append(costs, other.cost)
		}
		if other == w {
			break
		}
	}
	return costs
}

// stir makes the first in line ask again at once: units came back.
func (ls *lines) stir(key string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if n := ls.byKey[key]; n != nil && len(n.waiters) > 0 {
		signal(n.waiters[0].again)
	}
}

// signal leaves a signal, if there is none yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
