package swap

import (
	"container/list"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// mostAtOnce is how many operations one flight carries.
const mostAtOnce = 4096

// A call is an operation that waits for its answer.
type call struct {
	program  *algorithm.Program
	accounts bool // what is kept is an account; the same for all calls of a name
	op       algorithm.Op
	look     bool         // the call wants the state
	now      int64        // microseconds, or store.OwnClock
	ended    func() error // is not nil when nobody waits for the answer any more
	end      time.Time    // of the time that the call has

	done    chan struct{} // closed when the answer is there
	verdict algorithm.Verdict
	at      int64   // microseconds
	state   []int64 // for a call that looks
	err     error
	refused error // why this call can't be carried out, where those beside it can

	place *list.Element // in the line; nil when it is on its way, or answered
}

// answer ends the wait for the answer, which is there unless there was an error.
func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}

// A line is the calls of this process for one name that wait until the flight under way has ended.
type line struct{ calls list.List }

// A queue has a line for each name that is busy.
type queue struct {
	mu      sync.Mutex
	lines   map[string]*line
	flights sync.WaitGroup
	closed  bool
}

// join puts a call at the end of its name's line, and reports whether the name was idle: the caller must then see to
// the line with next until that is nil.
func (q *queue) join(name string, c *call) (idle bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	l := q.lines[name]
	if idle = l == nil; idle {
		l = &line{}
		q.lines[name] = l
		q.flights.Add(1)
	}
	c.place = l.calls.PushBack(c)
	return idle, nil
}

// leave takes a call out of its line. It reports false for one that is not in it any more.
func (q *queue) leave(name string, c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.place == nil {
		return false
	}
	q.lines[name].calls.Remove(c.place)
	c.place = nil
	return true
}

// next takes the first calls out of the line. If there are none, nothing is left of the line.
func (q *queue) next(name string) (calls []*call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[name]
	for e := l.calls.Front(); e != nil && len(calls) < mostAtOnce; e = l.calls.Front() {
		c := l.calls.Remove(e).(*call)
		c.place = nil
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		delete(q.lines, name)
		q.flights.Done()
	}
	return calls
}

// close lets no more calls in, and waits until all lines are empty.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.flights.Wait()
}
