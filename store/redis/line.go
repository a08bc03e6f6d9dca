package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// mostAtOnce is how many steps one swap carries.
const mostAtOnce = 512

// A waiter is a step that is to be taken by a swap.
type waiter struct {
	step
	done    chan struct{} // closed when there is an answer
	verdict algorithm.Verdict
	at      int64
	err     error
}

// lines put the swaps of this process on one name together: while one is under way the other steps wait, and the next one carries them all.
type lines struct {
	mu      sync.Mutex
	waiting map[string][]*waiter // by the names on which a swap is under way
}

// join puts a step in the line of its name, and reports whether there was none: who began it sees to it.
func (l *lines) join(w *waiter) (began bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, busy := l.waiting[w.name]
	l.waiting[w.name] = append(l.waiting[w.name], w)
	return !busy
}

// leave takes a step out of its line, if it is still there.
func (l *lines) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[w.name]
	i := slices.Index(line, w)
	if i >= 0 {
		l.waiting[w.name] = slices.Delete(line, i, i+1)
	}
	return i >= 0
}

// next takes the first steps out of a line, which ends if there are none.
func (l *lines) next(name string) []*waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.waiting[name]
	if len(line) == 0 {
		delete(l.waiting, name)
		return nil
	}
	n := min(mostAtOnce, len(line))
	l.waiting[name] = slices.Clone(line[n:])
	return line[:n]
}

// await takes a step by a swap, with others of this process on the same name. found has the value, if it has been loaded.
func (s *Store) await(ctx context.Context, st step, found *reply) (algorithm.Verdict, int64, error) {
	if err := ctx.Err(); err != nil {
		return algorithm.Verdict{}, 0, st.givenUp(err, store.ErrNothingDone)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	w := &waiter{step: st, done: make(chan struct{})}
	if s.lines.join(w) {
		go s.serve(st.name, found) //nolint:gosec,contextcheck // it goes on for others when this context ends
	}
	select {
	case <-w.done:
		return w.verdict, w.at * tick, w.err
	case <-ctx.Done():
	}
	if s.lines.leave(w) {
		return algorithm.Verdict{}, 0, st.givenUp(ctx.Err(), store.ErrNothingDone)
	}
	return algorithm.Verdict{}, 0, st.givenUp(ctx.Err(), errUnknown)
}

// givenUp is the error of a step whose time is over.
func (s *step) givenUp(err, known error) error {
	s.store.failures.Add(1)
	return fmt.Errorf("redis: %s at %s: %w; %w", verb(s.op.Kind), s.store.server, err, known)
}

// serve takes the steps of a line until there are none. The swaps have a time of their own: that of a caller ends with it, and others go on.
func (s *Store) serve(name string, found *reply) {
	for line := s.lines.next(name); line != nil; line = s.lines.next(name) {
		q := request{store: s, verb: verb(line[0].op.Kind), mode: each, steps: make([]step, len(line))}
		for i, w := range line {
			q.steps[i] = w.step
		}
		if len(line) > 1 {
			found = nil // it was loaded before the others asked
		}
		verdicts, at, err := q.swap(context.Background(), found)
		found = nil
		for i, w := range line {
			if w.err = err; err == nil {
				w.verdict, w.at = verdicts[i], w.step.at(at)
			}
			close(w.done)
		}
	}
}
