package decide

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const (
	// maxBytes bounds the memory of local limits, for each store that failed.
	maxBytes = 64 << 20
	// maxBounds is how many bounds are cached. A bound beyond it has the same states.
	maxBounds = 1024
	// keepTime is how long local limits are kept after their last use. A store that fails again
	// sooner finds them as they were.
	keepTime = time.Hour
)

// A local is the local limits in place of one store.
type local struct {
	key    any // of the store in locals
	memory *memory.Store
	used   atomic.Int64 // when it was used, in nanoseconds since start
	start  time.Time

	mu     sync.Mutex
	bounds map[store.Spec]*store.Bound
}

// locals are the local limits of all stores that failed lately. All limiters, policies and
// middleware on one store have the same.
var locals struct {
	mu      sync.Mutex
	byStore map[any]*local
}

// localOf returns the local limits in place of a store. A store of a type that can't be compared
// shares them with the stores of its type.
func localOf(s store.Store) *local {
	var key any = s
	if v := reflect.ValueOf(s); !v.IsValid() || !v.Comparable() {
		key = reflect.TypeOf(s)
	}
	locals.mu.Lock()
	defer locals.mu.Unlock()
	l := locals.byStore[key]
	if l == nil {
		l = &local{
			key: key, memory: memory.New(memory.Options{MaxBytes: maxBytes}), start: time.Now(),
			bounds: map[store.Spec]*store.Bound{},
		}
		if locals.byStore == nil {
			locals.byStore = map[any]*local{}
		}
		locals.byStore[key] = l
		time.AfterFunc(keepTime, l.release)
	}
	l.use()
	return l
}

func (l *local) use() { l.used.Store(int64(time.Since(l.start))) }

// release drops the local limits if they were not used for keepTime.
func (l *local) release() {
	locals.mu.Lock()
	defer locals.mu.Unlock()
	left := keepTime - (time.Since(l.start) - time.Duration(l.used.Load()))
	if left > 0 {
		time.AfterFunc(left, l.release)
		return
	}
	delete(locals.byStore, l.key)
}

// localSpec returns the spec of a share of a limit. All shares of one limit have one state for a
// key, also of a limit without a name: a different share is no fresh budget.
func localSpec(spec store.Spec, share algorithm.Limit) store.Spec {
	name := "n:" + spec.Name
	switch {
	case spec.TimeDebt:
		name = "d:" + spec.Name
	case spec.Name == "":
		name = "l:" + spec.Limit.Canonical().String()
	}
	return store.Spec{Limit: share, Name: name, TimeDebt: spec.TimeDebt}
}

// bound returns the bound of a spec.
func (l *local) bound(spec store.Spec) (*store.Bound, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.bounds[spec]; ok {
		return b, nil
	}
	b, err := store.Bind(l, spec, store.Deny)
	if err != nil {
		return nil, err
	}
	b.Failed, b.Local = true, true
	if len(l.bounds) < maxBounds {
		l.bounds[spec] = b
	}
	return b, nil
}

// Bind implements [store.Store].
func (l *local) Bind(spec store.Spec) (store.Binding, error) {
	b, err := l.memory.Bind(spec)
	if err != nil {
		return nil, err
	}
	return binding{b.(memoryBinding), l}, nil //nolint:forcetypeassert // memory has them all
}

// TakeAll implements [store.Joiner].
func (l *local) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	l.use()
	inner := make([]store.Part, len(parts))
	for i, p := range parts {
		if b, ok := p.Binding.(binding); ok {
			p.Store, p.Binding = l.memory, b.memoryBinding
		}
		inner[i] = p
	}
	return l.memory.TakeAll(ctx, inner, now, outcomes)
}

type memoryBinding interface {
	store.Binding
	store.Clock
	store.Inspector
}

// A binding is a local limit. Its use keeps the local limits.
type binding struct {
	memoryBinding
	of *local
}

// Do implements [store.Binding].
func (b binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.of.use()
	return b.memoryBinding.Do(ctx, key, op, now)
}
