package acceptance_test

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A gatedStore is a store in memory whose operations wait or fail for a test.
type gatedStore struct {
	store.Store
	mu     sync.Mutex
	before func(algorithm.Op) error // nil: nothing
	ops    atomic.Int64
}

type gatedBinding struct {
	store.Binding
	s *gatedStore
}

func newGatedStore() *gatedStore { return &gatedStore{Store: memory.New(memory.Options{})} }

func (s *gatedStore) set(before func(algorithm.Op) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *gatedStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return gatedBinding{b, s}, err
}

func (b gatedBinding) Now() int64 { return b.Binding.(store.Clock).Now() } //nolint:forcetypeassert // memory has it

func (b gatedBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.s.ops.Add(1)
	b.s.mu.Lock()
	before := b.s.before
	b.s.mu.Unlock()
	if before != nil {
		if err := before(op); err != nil {
			return algorithm.Verdict{}, err
		}
	}
	return b.Binding.Do(ctx, key, op, now)
}
