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

func (s *shelf) Load(ctx context.Context, keys []swap.Key) ([]swap.Cell, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if s.before == nil {
			break
		}
		if err := s.before(k.Name); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	cells := make([]swap.Cell, len(keys))
	for i, k := range keys {
		r := s.cells[k.Name]
		cells[i] = swap.Cell{Record: copied(r), Token: copied(r), Now: s.now()}
	}
	return cells, nil
}

func copied(r swap.Record) swap.Record {
	return swap.Record{Head: r.Head, State: slices.Clone(r.State)}
}

func equal(a, b swap.Record) bool { return a.Head == b.Head && slices.Equal(a.State, b.State) }

func (s *shelf) Swap(ctx context.Context, changes []swap.Change) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	for _, c := range changes {
		if s.during == nil {
			break
		}
		if lose, err := s.during(c.Name); lose || err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swaps++
	for _, c := range changes {
		if was := s.cells[c.Name]; !equal(was, c.Old.Token.(swap.Record)) || !equal(was, c.Old.Record) {
			return false, nil
		}
	}
	for _, c := range changes {
		if c.Next.Empty() {
			delete(s.cells, c.Name)
			delete(s.lives, c.Name)
			continue
		}
		s.cells[c.Name], s.lives[c.Name] = copied(c.Next), c.Life
	}
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
