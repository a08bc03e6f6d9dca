package swap

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/panics"
)

// mostSteps and mostNames bound the steps and names that one swap carries.
const (
	mostSteps = 2048
	mostNames = 512
)

// A call is a request in the queue.
type call struct {
	*Request
	names    []string     // of the steps, sorted, each once
	one      [1]string    // memory for the names of most calls
	held     int          // number of the names that the call has, from the first
	waits    string       // the name that it waits for; "" if it has all, or has left
	canceled func() error // is not nil if the caller does not wait any more
	end      time.Time    // of the time that the call has

	done chan struct{} // closed when there is an answer
	err  error         // of this call alone, or of its round
}

// A queue ensures that no two rounds of this process work on one name at a time. A call gets its
// names one after another, in their order, so that no two calls wait for each other. A round takes
// along the calls that wait for its names, in the order in which they came.
type queue struct {
	mu     sync.Mutex
	busy   map[string][]*call // for each name that a call has, the calls that wait for it
	calls  sync.WaitGroup
	closed bool
}

func newCall(r *Request) *call {
	c := &call{Request: r, done: make(chan struct{})}
	c.names = c.one[:0]
	for i := range r.Steps {
		c.names = append(c.names, r.Steps[i].Name)
	}
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	return c
}

// join makes a call wait for its names. It returns the calls of a round that can begin, if any.
func (q *queue) join(c *call) ([]*call, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	q.calls.Add(1)
	if !q.advance(c) {
		return nil, nil
	}
	return q.gather(c), nil
}

// advance gives a call the names that it lacks, and reports whether it has all.
func (q *queue) advance(c *call) bool {
	for ; c.held < len(c.names); c.held++ {
		name := c.names[c.held]
		if waiting, busy := q.busy[name]; busy {
			c.waits, c.Found = name, nil
			q.busy[name] = append(waiting, c)
			return false
		}
		q.busy[name] = nil
	}
	c.waits = ""
	return true
}

// gather adds to a call that has its names the calls that wait for one of them, and for no name that
// another round has.
func (q *queue) gather(first *call) []*call {
	round, names, steps := []*call{first}, first.names, len(first.Steps)
	if !slices.ContainsFunc(names, func(name string) bool { return len(q.busy[name]) > 0 }) {
		return round
	}
	has := map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	elsewhere := func(name string) bool {
		_, busy := q.busy[name]
		return busy && !has[name]
	}
	names = slices.Clone(names)
	for i := 0; i < len(names); i++ { // each call may bring more names
		full := false
		q.busy[names[i]] = slices.DeleteFunc(q.busy[names[i]], func(c *call) bool {
			full = full || steps+len(c.Steps) > mostSteps || len(names)+len(c.names) > mostNames
			if full || slices.ContainsFunc(c.names[c.held:], elsewhere) {
				return false
			}
			for j, name := range c.names {
				if !has[name] && j >= c.held {
					q.busy[name] = nil
				}
				if !has[name] {
					has[name], names = true, append(names, name)
				}
			}
			c.held, c.waits = len(c.names), ""
			round, steps = append(round, c), steps+len(c.Steps)
			return true
		})
	}
	return round
}

// release takes names from a round or a call, and gives them to the calls that have waited longest.
// It returns the rounds that can begin.
func (q *queue) release(names []string) (rounds [][]*call) {
	var ready []*call
	for _, name := range names {
		waiting, busy := q.busy[name]
		switch {
		case !busy:
		case len(waiting) == 0:
			delete(q.busy, name)
		default:
			c := waiting[0]
			q.busy[name] = slices.Delete(waiting, 0, 1)
			if c.held++; q.advance(c) {
				ready = append(ready, c)
			}
		}
	}
	for _, c := range ready {
		rounds = append(rounds, q.gather(c))
	}
	return rounds
}

// finish ends a round, and returns those that can begin.
func (q *queue) finish(round []*call) [][]*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	names := round[0].names
	if len(round) > 1 {
		names = nil
		for _, c := range round {
			names = append(names, c.names...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return q.release(names)
}

// leave removes a call that waits for a name. It reports false for one that is in a round.
func (q *queue) leave(c *call) (left bool, rounds [][]*call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.waits == "" {
		return false, nil
	}
	waiting := q.busy[c.waits]
	i := slices.Index(waiting, c)
	q.busy[c.waits], c.waits = slices.Delete(waiting, i, i+1), ""
	q.calls.Done()
	return true, q.release(c.names[:c.held])
}

// close lets no more calls in, and waits until all have ended.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.calls.Wait()
}

// await queues a request, and waits for its answer for as long as the caller does and the timeout
// allows.
func (s *Store) await(caller context.Context, r *Request) error {
	if caller.Err() != nil {
		return s.givenUp(caller, ErrNothingDone)
	}
	ctx, cancel := context.WithTimeout(caller, s.options.Timeout)
	defer cancel()
	c := newCall(r)
	c.canceled = ctx.Err
	c.end, _ = ctx.Deadline()
	round, err := s.queue.join(c)
	if err != nil {
		return err
	}
	if round != nil {
		go s.serve(round) //nolint:contextcheck // it goes on for other callers when this context ends
	}
	select {
	case <-c.done:
		panics.Raise(c.err)
		if errors.Is(c.err, errGivenUp) {
			return s.givenUp(caller, ErrNothingDone)
		}
		return c.err
	case <-ctx.Done():
	}
	left, rounds := s.queue.leave(c)
	for _, round := range rounds {
		go s.serve(round) //nolint:contextcheck // as above
	}
	if left {
		return s.givenUp(caller, ErrNothingDone)
	}
	return s.givenUp(caller, errUnknown)
}

// serve carries out a round, and then the rounds that waited for it.
func (s *Store) serve(round []*call) {
	for round != nil {
		s.carryOut(round)
		next := s.queue.finish(round)
		for _, c := range round {
			close(c.done)
		}
		s.queue.calls.Add(-len(round))
		round = nil
		for i, r := range next {
			if i == 0 {
				round = r
			} else {
				go s.serve(r)
			}
		}
	}
}

// carryOut carries out a round. A panic is an error of all its calls, which await raises again. The
// round has a context of its own, because the context of a caller ends with the caller, while other
// calls go on. It ends with the time of the call that has most.
func (s *Store) carryOut(calls []*call) {
	end := calls[0].end
	for _, c := range calls {
		if c.end.After(end) {
			end = c.end
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	err := panics.Catch(func() error { return newRound(s, calls).run(ctx) })
	for _, c := range calls {
		if c.err == nil {
			c.err = err
		}
	}
}
