package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// mostAtOnce is about how many steps one swap carries.
const mostAtOnce = 512

// A waiter is a request that is to be carried out by a swap.
type waiter struct {
	*request
	names []string     // of the steps, each once, in order
	held  int          // how many of them it has
	waits string       // the name that it waits for, if it does
	found *reply       // what there is under the names, if that has been loaded
	ended func() error // is not nil when nobody waits for the answer any more
	end   time.Time    // of the time that the request has

	done     chan struct{} // closed when there is an answer
	verdicts []algorithm.Verdict
	time     int64 // the server's, in microseconds
	err      error
}

// lines see to it that of the swaps of this process no two are under way on one name at a time. A request has its names one after another, in their
// order, so that no two wait for one another. A swap takes along those that wait for its names.
type lines struct {
	mu   sync.Mutex
	busy map[string][]*waiter // those that wait for each name that somebody has
}

func newWaiter(q *request, found *reply) *waiter {
	w := &waiter{request: q, names: make([]string, len(q.steps)), found: found, done: make(chan struct{})}
	for i := range q.steps {
		w.names[i] = q.steps[i].name
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	return w
}

// join has a request wait for its names. It returns the requests that have theirs, and are to be carried out together.
func (l *lines) join(w *waiter) []*waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.advance(w) {
		return nil
	}
	return l.board(w)
}

// advance gives a request the names that it has not, and reports whether it has them all.
func (l *lines) advance(w *waiter) bool {
	for ; w.held < len(w.names); w.held++ {
		name := w.names[w.held]
		if waiting, busy := l.busy[name]; busy {
			w.waits, w.found = name, nil
			l.busy[name] = append(waiting, w)
			return false
		}
		l.busy[name] = nil
	}
	w.waits = ""
	return true
}

// board adds to a request that has its names those that wait for one of them, and for no names that others have.
func (l *lines) board(first *waiter) []*waiter {
	flight, names, steps := []*waiter{first}, slices.Clone(first.names), len(first.steps)
	has := map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	for i := 0; i < len(names); i++ { // there may be more names with each that comes along
		l.busy[names[i]] = slices.DeleteFunc(l.busy[names[i]], func(w *waiter) bool {
			if steps+len(w.steps) > mostAtOnce || slices.ContainsFunc(w.names[w.held:], func(name string) bool {
				_, busy := l.busy[name]
				return busy && !has[name]
			}) {
				return false
			}
			for j, name := range w.names {
				if j >= w.held && !has[name] {
					l.busy[name] = nil
				}
				if !has[name] {
					has[name], names = true, append(names, name)
				}
			}
			w.held, w.waits = len(w.names), ""
			flight, steps = append(flight, w), steps+len(w.steps)
			return true
		})
	}
	if len(flight) > 1 {
		first.found = nil // it was loaded before the others asked
	}
	return flight
}

// release takes names from who has them, and gives them to those that have waited longest. It returns what is to be carried out then.
func (l *lines) release(names []string) (flights [][]*waiter) {
	var ready []*waiter
	for _, name := range names {
		waiting, busy := l.busy[name]
		switch {
		case !busy:
		case len(waiting) == 0:
			delete(l.busy, name)
		default:
			w := waiting[0]
			l.busy[name] = slices.Delete(waiting, 0, 1)
			if w.held++; l.advance(w) {
				ready = append(ready, w)
			}
		}
	}
	for _, w := range ready {
		flights = append(flights, l.board(w))
	}
	return flights
}

// end ends a flight.
func (l *lines) end(flight []*waiter) [][]*waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, w := range flight {
		names = append(names, w.names...)
	}
	slices.Sort(names)
	return l.release(slices.Compact(names))
}

// leave takes out a request that still waits for a name.
func (l *lines) leave(w *waiter) (left bool, flights [][]*waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.waits == "" {
		return false, nil
	}
	waiting := l.busy[w.waits]
	i := slices.Index(waiting, w)
	l.busy[w.waits] = slices.Delete(waiting, i, i+1)
	return true, l.release(w.names[:w.held])
}

// await carries out a request by a swap, with others of this process on the same names. found has what there is under them, if that has been
// loaded. The time is the server's, in microseconds.
func (s *Store) await(ctx context.Context, q *request, found *reply) ([]algorithm.Verdict, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, q.givenUp(err, store.ErrNothingDone)
	}
	w := newWaiter(q, found)
	w.ended = ctx.Err
	if end, ok := ctx.Deadline(); ok {
		w.end = end
	} else {
		w.end = time.Now().Add(s.timeout)
	}
	if flight := s.lines.join(w); flight != nil {
		go s.fly(flight) //nolint:gosec,contextcheck // it goes on for others when this context ends
	}
	select {
	case <-w.done:
		panics.Raise(w.err)
		return w.verdicts, w.time, w.err
	case <-ctx.Done():
	}
	if left, flights := s.lines.leave(w); left {
		for _, flight := range flights {
			go s.fly(flight) //nolint:gosec,contextcheck // as above
		}
		return nil, 0, q.givenUp(ctx.Err(), store.ErrNothingDone)
	}
	return nil, 0, q.givenUp(ctx.Err(), errUnknown)
}

// givenUp is the error of a request whose time is over.
func (q *request) givenUp(err, known error) error {
	q.store.failures.Add(1)
	return fmt.Errorf("redis: %s at %s: %w; %w", q.verb, q.store.server, err, known)
}

// fly carries out a flight. A panic is an error of all waiters, which await raises again. It ends with the time of the
// caller that has most: when one caller goes, the requests of others go on.
func (s *Store) fly(flight []*waiter) {
	end := flight[0].end
	for _, w := range flight {
		if w.end.After(end) {
			end = w.end
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	err := panics.Catch(func() error {
		swap := newSwapping(s, flight)
		for _, name := range swap.names {
			s.recent.add(name)
		}
		return swap.run(ctx)
	})
	cancel()
	for _, next := range s.lines.end(flight) {
		go s.fly(next)
	}
	for _, w := range flight {
		if err != nil && w.err == nil {
			w.err = err
		}
		close(w.done)
	}
}
