package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A broken binding fails at the operations of its kinds.
type broken struct {
	store.Binding
	kinds []algorithm.Kind
}

var errBroken = errors.New("the engine is away")

func (b broken) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	for _, k := range b.kinds {
		if op.Kind == k && op.Cost > 0 {
			return algorithm.Verdict{}, errBroken
		}
	}
	return b.Binding.Do(ctx, key, op, now)
}

func bindPart(t *testing.T, s store.Store, text, key string, cost int64) store.Part {
	t.Helper()
	limit := algorithm.MustParseLimit(text)
	b, err := s.Bind(store.Spec{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return store.Part{Binding: b, Limit: limit, Key: key, Cost: cost}
}

func remaining(t *testing.T, p store.Part) int64 {
	t.Helper()
	v, err := p.Binding.Do(context.Background(), p.Key, algorithm.Op{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v.Remaining
}

func TestTakeInTurnGivesBackWhenAPartFails(t *testing.T) {
	s := memory.New(memory.Options{})
	first, second := bindPart(t, s, "10/1h", "k", 3), bindPart(t, s, "fixed-window 10/1h", "k", 3)
	second.Binding = broken{second.Binding, []algorithm.Kind{algorithm.Take}}
	had := []algorithm.Verdict{{Granted: 7}}
	verdicts, err := store.TakeInTurn(context.Background(), []store.Part{first, second}, 0, had)
	if !errors.Is(err, errBroken) || len(verdicts) != 1 {
		t.Errorf("verdicts %+v, error %v; want the verdict that was there, and the engine's error", verdicts, err)
	}
	if left := remaining(t, first); left != 10 {
		t.Errorf("%d remain in the part before the one that failed, want 10", left)
	}
}

func TestTakeInTurnSaysThatItCouldNotGiveBack(t *testing.T) {
	s := memory.New(memory.Options{})
	first, second := bindPart(t, s, "10/1h", "k", 3), bindPart(t, s, "fixed-window 1/1h", "k", 3)
	first.Binding = broken{first.Binding, []algorithm.Kind{algorithm.Refund, algorithm.Cancel}}
	_, err := store.TakeInTurn(context.Background(), []store.Part{first, second}, 0, nil)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "giving back") {
		t.Errorf("error %v; want one that says that what was taken was not given back", err)
	}
}

// Whoever asks for what at the same time, no part admits more than its capacity, and when all is over just what passed is charged.
func TestTakeInTurnUnderConcurrency(t *testing.T) {
	s := memory.New(memory.Options{})
	a, b := bindPart(t, s, "50/1h", "k", 1), bindPart(t, s, "fixed-window 40/1h", "k", 1)
	c := bindPart(t, s, "sliding-log 1000/1h", "k", 1)
	var mu sync.Mutex
	passed := map[string]int64{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				parts, name := []store.Part{a, b}, "ab"
				if rand.IntN(2) == 0 {
					parts, name = []store.Part{c, b}, "cb"
				}
				verdicts, err := store.TakeInTurn(context.Background(), parts, 0, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if verdicts[0].Granted == 1 && verdicts[1].Granted == 1 {
					mu.Lock()
					passed[name]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if ab, cb := passed["ab"], passed["cb"]; remaining(t, a) != 50-ab || remaining(t, b) != 40-ab-cb || remaining(t, c) != 1000-cb {
		t.Errorf("passed %v; remaining %d of 50, %d of 40, %d of 1000", passed, remaining(t, a), remaining(t, b), remaining(t, c))
	}
}
