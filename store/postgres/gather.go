package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// mostJoints is how many joints one flight carries.
const mostJoints = 256

// A gathering sends joints on their way: at once those that share no name with others, and when others are back those that waited for them,
// together. So one process has one swap under way for a name, however many requests there are.
type gathering struct {
	engine   *engine
	timeout  time.Duration
	mostLost int // swaps, before joints are taken in turn

	mu      sync.Mutex
	busy    map[string]bool // names that are in a flight
	waiting []*joint        // in the order in which they came
	flights sync.WaitGroup
	closed  bool
}

func newGathering(e *engine, timeout time.Duration) *gathering {
	return &gathering{engine: e, timeout: timeout, mostLost: defaultLost, busy: map[string]bool{}}
}

// await sends a joint on its way, and waits for the answer for as long as the caller does and the timeout allows.
func (g *gathering) await(caller context.Context, j *joint) error {
	ctx, cancel := context.WithTimeout(caller, g.timeout)
	defer cancel()
	j.end, _ = ctx.Deadline()
	if j.ended = ctx.Err; ctx.Err() != nil {
		return g.givenUp(caller, swap.ErrNothingDone)
	}
	if err := g.join(j); err != nil {
		return err
	}
	select {
	case <-j.done:
		panics.Raise(j.err)
		if errors.Is(j.err, errGivenUp) {
			return g.givenUp(caller, swap.ErrNothingDone)
		}
		return j.err
	case <-ctx.Done():
	}
	if g.leave(j) {
		return g.givenUp(caller, swap.ErrNothingDone)
	}
	return g.givenUp(caller, errUnknown)
}

// errGivenUp marks joints that were dropped before they changed anything.
var errGivenUp = errors.New("given up")

// errUnknown is in errors of joints that may have taken effect.
var errUnknown = errors.New("whether anything was changed is unknown")

func (g *gathering) givenUp(caller context.Context, effect error) error {
	switch err := caller.Err(); {
	case err != nil && store.TimedOut(caller):
		return fmt.Errorf("postgres: %w; %w", context.Cause(caller), effect)
	case err != nil:
		return fmt.Errorf("postgres: the caller gave up: %w; %w", err, effect)
	}
	return fmt.Errorf("postgres: no answer within %v: %w; %w", g.timeout, context.DeadlineExceeded, effect)
}

func (g *gathering) join(j *joint) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return swap.ErrClosed
	}
	j.waits = true
	meets := j.meets(g.busy) || slices.ContainsFunc(g.waiting, j.shares)
	g.waiting = append(g.waiting, j)
	if !meets {
		g.start()
	}
	return nil
}

// leave takes a joint out that is in no flight yet. It reports false for one that is.
func (g *gathering) leave(j *joint) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !j.waits {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *joint) bool { return other == j })
	g.start()
	return true
}

// start sends off all who wait for nobody: neither for a name in a flight, nor for one before them who waits. Those of one name go together.
func (g *gathering) start() {
	blocked := map[string]bool{}
	going := map[string]*flight{} // by name
	var ready []*flight
	g.waiting = slices.DeleteFunc(g.waiting, func(j *joint) bool {
		full := slices.ContainsFunc(j.parts, func(p part) bool { f := going[p.name]; return f != nil && len(f.joints) >= mostJoints })
		if full || j.meets(g.busy) || j.meets(blocked) {
			for _, p := range j.parts {
				blocked[p.name] = true
			}
			return false
		}
		f := j.boards(going)
		if f == nil {
			f = &flight{gathering: g}
			ready = append(ready, f)
		}
		f.take(going, j)
		return true
	})
	for _, f := range ready {
		if len(f.joints) > 0 { // else it is part of another
			f.begin()
		}
	}
}

// boards returns the flight of those who share a name with the joint, which it makes one if there are several.
func (j *joint) boards(going map[string]*flight) (f *flight) {
	for _, p := range j.parts {
		switch other := going[p.name]; {
		case other == nil || other == f:
		case f == nil:
			f = other
		default:
			f.take(going, other.joints...)
			other.joints = nil
		}
	}
	return f
}

// end is called when a flight has ended, and sends off who waited for it.
func (g *gathering) end(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range f.names {
		delete(g.busy, name)
	}
	g.start()
}

// close lets no more joints in, and waits until all have their answers.
func (g *gathering) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.flights.Wait()
}

// meets reports whether a name of the joint is among these.
func (j *joint) meets(names map[string]bool) bool {
	return slices.ContainsFunc(j.parts, func(p part) bool { return names[p.name] })
}

// shares reports whether two joints have a name in common.
func (j *joint) shares(other *joint) bool {
	return slices.ContainsFunc(j.parts, func(p part) bool {
		return slices.ContainsFunc(other.parts, func(q part) bool { return p.name == q.name })
	})
}
