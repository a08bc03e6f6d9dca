package memory

import (
	"maps"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/weirlimit/weir/algorithm"
)

// A programTable has one Program for all bindings and records of a limit, while there are any: a
// million keys of one limit refer to one Program, for any number of bindings.
type programTable struct {
	mu      sync.Mutex
	byLimit compactMap[algorithm.Limit, weak.Pointer[algorithm.Program]]
}

// programBytes is about the size of a Program, with its places in the tables.
const programBytes = 768

// compile returns the Program of a limit. A Program costs nothing until a record refers to it:
// policies must be bound, and the caller bounds its bindings.
func (t *programTable) compile(limit algorithm.Limit) (*algorithm.Program, error) {
	limit = limit.Canonical()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byLimit.get(limit).Value(); p != nil {
		return p, nil
	}
	p, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		return nil, err
	}
	t.byLimit.set(limit, weak.Make(p))
	runtime.AddCleanup(p, t.forget, limit)
	return p, nil
}

// forget removes a limit whose Program is garbage, unless there is another one.
func (t *programTable) forget(limit algorithm.Limit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byLimit.get(limit).Value() == nil {
		t.byLimit.remove(limit)
	}
}

// hold counts a record of the owner that refers to a Program from now on. The first such record
// charges the owner for the Program. If bounded, hold returns false where there is no memory for it.
func (r *room) hold(o *owner, p *algorithm.Program, bounded bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	records := o.programs.get(p)
	switch {
	case records > 0:
	case !bounded:
		r.force(o, programBytes)
	case !r.grow(o, programBytes):
		return false
	}
	o.programs.set(p, records+1)
	return true
}

// release is the reverse of hold.
func (r *room) release(o *owner, p *algorithm.Program) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if records := o.programs.get(p); records > 1 {
		o.programs.set(p, records-1)
		return
	}
	o.programs.remove(p)
	r.force(o, -programBytes)
}

// releaseUnused releases the Program of a record if the record after it has another.
func (r *room) releaseUnused(o *owner, before, after *algorithm.Account) {
	if p := before.Program; p != nil && p != after.Program {
		r.release(o, p)
	}
}

// holds reports whether the owner is charged for a Program.
func (o *owner) holds(p *algorithm.Program) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.programs.get(p) > 0
}

// A compactMap is a map that gives memory back when most of its keys are removed: Go's maps keep the
// memory of their peak.
type compactMap[K comparable, V any] struct {
	m    map[K]V
	peak int // the most keys since m was made
}

// shrinkFrom is the peak from which a compactMap gives memory back.
const shrinkFrom = 64

func (c *compactMap[K, V]) get(key K) V { return c.m[key] }

func (c *compactMap[K, V]) set(key K, value V) {
	if c.m == nil {
		c.m = map[K]V{}
	}
	c.m[key] = value
	c.peak = max(c.peak, len(c.m))
}

func (c *compactMap[K, V]) remove(key K) {
	delete(c.m, key)
	if c.peak >= shrinkFrom && len(c.m) < c.peak/4 {
		smaller := make(map[K]V, len(c.m))
		maps.Copy(smaller, c.m)
		c.m, c.peak = smaller, len(smaller)
	}
}
