package swap_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A shelf is an engine in memory that is as slow, as contended and as broken as a test wants it.
type shelf struct {
	mu     sync.Mutex
	cells  map[string]swap.Record
	lives  map[string]time.Duration
	now    func() int64 // microseconds
	delay  time.Duration
	loads  int
	swaps  int // that were tried
	before func(name string) error
	during func(name string) (lose bool, err error) // called before each swap
}

func newShelf() *shelf {
	return &shelf{
		cells: map[string]swap.Record{}, lives: map[string]time.Duration{},
		now: func() int64 { return time.Now().UnixMicro() },
	}
}

func (s *shelf) wait(ctx context.Context) error {
	if s.delay == 0 {
		return nil
	}
	select {
	case <-time.After(s.delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *shelf) Load(ctx context.Context, name string) (swap.Cell, error) {
	if err := s.wait(ctx); err != nil {
		return swap.Cell{}, err
	}
	if s.before != nil {
		if err := s.before(name); err != nil {
			return swap.Cell{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	r := s.cells[name]
	return swap.Cell{Record: copied(r), Token: copied(r), Now: s.now()}, nil
}

func copied(r swap.Record) swap.Record {
	return swap.Record{Head: r.Head, State: slices.Clone(r.State)}
}

func equal(a, b swap.Record) bool { return a.Head == b.Head && slices.Equal(a.State, b.State) }

func (s *shelf) Swap(ctx context.Context, name string, old swap.Cell, next swap.Record, life time.Duration) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	if s.during != nil {
		if lose, err := s.during(name); lose || err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swaps++
	if was := s.cells[name]; !equal(was, old.Token.(swap.Record)) || !equal(was, old.Record) {
		return false, nil
	}
	if next.Empty() {
		delete(s.cells, name)
		delete(s.lives, name)
		return true, nil
	}
	s.cells[name], s.lives[name] = copied(next), life
	return true, nil
}

func bind(t testing.TB, s *swap.Store, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func take(b store.Binding, key string, cost int64) (algorithm.Verdict, error) {
	return b.Do(context.Background(), key, algorithm.Op{Cost: cost}, store.OwnClock)
}

// Pitfall S3, within one process: exactly the capacity is admitted, however many ask.
func TestS3ExactUnderConcurrency(t *testing.T) {
	engine := newShelf()
	b := bind(t, swap.New(engine, swap.Options{}), "25/1h")
	var wg sync.WaitGroup
	var mu sync.Mutex
	admitted := int64(0)
	for range 200 {
		wg.Go(func() {
			v, err := take(b, "k", 1)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			admitted += max(0, v.Granted)
			mu.Unlock()
		})
	}
	wg.Wait()
	if admitted != 25 {
		t.Errorf("%d were admitted, want 25", admitted)
	}
}
