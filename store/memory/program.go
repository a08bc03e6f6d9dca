package memory

import (
	"maps"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/weirlimit/weir/algorithm"
)

// A programTable has one Program for all bindings and accounts of a limit, while there are any: a
// million keys of one limit refer to one Program, for any number of bindings.
type programTable struct {
	room    *room // counts programBytes for each
	mu      sync.Mutex
	byLimit map[algorithm.Limit]weak.Pointer[algorithm.Program]
	peak    int // the most limits that byLimit had since it was made
}

// shrinkFrom is the peak from which a map that lost most of its limits is made again: Go's maps
// keep the memory of their peak.
const shrinkFrom = 64

// programBytes is about the size of a Program, with its place in the table.
const programBytes = 768

// compile returns the Program of a limit.
func (t *programTable) compile(limit algorithm.Limit) (*algorithm.Program, error) {
	limit = limit.Canonical()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byLimit[limit].Value(); p != nil {
		return p, nil
	}
	p, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		return nil, err
	}
	if t.byLimit == nil {
		t.byLimit = map[algorithm.Limit]weak.Pointer[algorithm.Program]{}
	}
	if _, ok := t.byLimit[limit]; !ok {
		t.room.bytes.Add(programBytes) // not refused: policies must be bound
	}
	t.byLimit[limit] = weak.Make(p)
	t.peak = max(t.peak, len(t.byLimit))
	runtime.AddCleanup(p, t.forget, limit)
	return p, nil
}

// forget removes a limit whose Program is garbage, unless there is another one.
func (t *programTable) forget(limit algorithm.Limit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.byLimit[limit]; ok && p.Value() == nil {
		delete(t.byLimit, limit)
		t.room.bytes.Add(-programBytes)
	}
	if t.peak >= shrinkFrom && len(t.byLimit) < t.peak/4 {
		t.shrink()
	}
}

// shrink makes the map again with the limits that it has. The caller holds the mutex.
func (t *programTable) shrink() {
	smaller := make(map[algorithm.Limit]weak.Pointer[algorithm.Program], len(t.byLimit))
	maps.Copy(smaller, t.byLimit)
	t.byLimit, t.peak = smaller, len(smaller)
}
