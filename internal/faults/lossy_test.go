package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A lossy store is a store in memory that can lose its latest changes, as a failover does. It loses
// all changes under limits that regain units during the test.
type lossy struct {
	mu     sync.Mutex
	memory store.Store
	log    []change
}

// A change is an operation on a key that a loss may leave.
type change struct {
	spec store.Spec
	key  string
	op   algorithm.Op
}

type lossyBinding struct {
	spec store.Spec
	by   *lossy
}

func newLossy() *lossy { return &lossy{memory: memory.New(memory.Options{})} }

func (s *lossy) Bind(spec store.Spec) (store.Binding, error) { return lossyBinding{spec, s}, nil }

func (b lossyBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.by.mu.Lock()
	defer b.by.mu.Unlock()
	if op.Cost > 0 && b.spec.Limit.Period > time.Hour {
		b.by.log = append(b.by.log, change{b.spec, key, op})
	}
	return b.by.do(ctx, change{b.spec, key, op}, now)
}

func (s *lossy) do(ctx context.Context, c change, now int64) (algorithm.Verdict, error) {
	b, err := s.memory.Bind(c.spec)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	return b.Do(ctx, c.key, c.op, now)
}

// lose loses the latest settlement and all changes after its reservation. It returns the time of
// the loss.
func (s *lossy) lose(t testing.TB) loss {
	began := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := len(s.log) - 1
	for s.log[settled].op.Kind != algorithm.Commit {
		settled--
	}
	kept := 0
	for s.log[kept].op.ID != s.log[settled].op.ID {
		kept++
	}
	s.memory, s.log = memory.New(memory.Options{}), s.log[:kept+1]
	for _, c := range s.log {
		if _, err := s.do(t.Context(), c, store.OwnClock); err != nil {
			t.Error(err)
		}
	}
	return loss{span: span{began, time.Now().UnixNano()}}
}
