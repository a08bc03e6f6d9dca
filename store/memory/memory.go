// Package memory keeps state in the memory of the process.
package memory

import (
	"context"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Options for New.
type Options struct {
	MaxKeys int
}

// Store is a store in memory.
type Store struct {
	mu     sync.Mutex
	states map[string][]int64
}

// New returns a store.
func New(Options) *Store { return &Store{states: map[string][]int64{}} }

type binding struct {
	s *Store
	p *algorithm.Program
	n string
}

// Bind implements store.Store.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	p, err := algorithm.Compile(spec.Limit, time.Nanosecond)
	if err != nil {
		return nil, err
	}
	n := spec.Name + "\x00" + p.Limit().String() + "\x00"
	if spec.TimeDebt {
		n = spec.Name + "\x00"
	}
	return &binding{s, p, n}, nil
}

func (b *binding) Do(_ context.Context, key string, op algorithm.Op, now int64) (algorithm.Result, error) {
	if now == store.OwnClock {
		now = time.Now().UnixNano()
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	state, r := b.p.Apply(b.s.states[b.n+key], op, now)
	b.s.states[b.n+key] = state
	return r, nil
}
