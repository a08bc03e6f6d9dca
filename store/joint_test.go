package store_test

import (
	"context"
	"errors"
	"fmt"
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

var errBroken = fmt.Errorf("the engine is away; %w", store.ErrNothingDone)

func (b broken) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	for _, k := range b.kinds {
		if op.Kind == k && op.Cost > 0 {
			return algorithm.Verdict{}, errBroken
		}
	}
	return b.Binding.Do(ctx, key, op, now)
}

func bindPart(t *testing.T, s store.Store, text string, cost int64) store.Part {
	t.Helper()
	limit := algorithm.MustParseLimit(text)
	b, err := s.Bind(store.Spec{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return store.Part{Binding: b, Limit: limit, Key: "k", Cost: cost}
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
	first, second := bindPart(t, s, "10/1h", 3), bindPart(t, s, "fixed-window 10/1h", 3)
	second.Binding = broken{second.Binding, []algorithm.Kind{algorithm.Take}}
	had := []store.Outcome{{Verdict: algorithm.Verdict{Granted: 7}}}
	verdicts, err := store.TakeInTurn(context.Background(), []store.Part{first, second}, 0, had)
	if !errors.Is(err, errBroken) || len(verdicts) != 1 {
		t.Errorf("verdicts %+v, error %v; want the verdict that was there, and the engine's error", verdicts, err)
	}
	if errors.Is(err, store.ErrNothingDone) {
		t.Errorf("error %v says that nothing was done; a part was charged for a while", err)
	}
	if left := remaining(t, first); left != 10 {
		t.Errorf("%d remain in the part before the one that failed, want 10", left)
	}
}

// A raced binding has somebody come between a look and the take.
type raced struct{ store.Binding }

func (r raced) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if op.Cost > 0 {
		if _, err := r.Binding.Do(ctx, key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 1000}, now); err != nil {
			return algorithm.Verdict{}, err
		}
	}
	return r.Binding.Do(ctx, key, op, now)
}

func TestTakeInTurnGivesBackWhenSomebodyCameBetween(t *testing.T) {
	s := memory.New(memory.Options{})
	first, second, third := bindPart(t, s, "10/1h", 3), bindPart(t, s, "fixed-window 10/1h", 3), bindPart(t, s, "sliding-log 10/1h", 3)
	second.Binding = raced{second.Binding}
	verdicts, err := store.TakeInTurn(context.Background(), []store.Part{first, second, third}, 0, nil)
	if err != nil || len(verdicts) != 3 || verdicts[0].Granted != 0 || verdicts[1].Granted != -1 || verdicts[2].Granted != 0 {
		t.Fatalf("verdicts %+v, error %v; want a denial by the second", verdicts, err)
	}
	if verdicts[0].Remaining != 10 || verdicts[1].Wait <= 0 || remaining(t, first) != 10 || remaining(t, third) != 10 {
		t.Errorf("verdicts %+v; %d and %d remain in the others; want 10", verdicts, remaining(t, first), remaining(t, third))
	}
}

func TestTakeInTurnSaysThatItCouldNotGiveBack(t *testing.T) {
	s := memory.New(memory.Options{})
	first, second := bindPart(t, s, "10/1h", 3), bindPart(t, s, "fixed-window 10/1h", 3)
	first.Binding = broken{first.Binding, []algorithm.Kind{algorithm.Refund, algorithm.Cancel}}
	second.Binding = raced{second.Binding}
	_, err := store.TakeInTurn(context.Background(), []store.Part{first, second}, 0, nil)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "giving back") {
		t.Errorf("error %v; want one that says that what was taken was not given back", err)
	}
}

// A window that begins with its first request is not begun by one that is denied.
func TestTakeInTurnLeavesNoTraceOfADenial(t *testing.T) {
	s := memory.New(memory.Options{})
	first, second := bindPart(t, s, "quota-reset 10/1h", 3), bindPart(t, s, "fixed-window 2/1h", 3)
	if _, err := store.TakeInTurn(context.Background(), []store.Part{first, second}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if v, err := first.Binding.Do(context.Background(), "k", algorithm.Op{}, 0); err != nil || v.Reset != 0 {
		t.Errorf("after a denial: %+v, %v; want a fresh key", v, err)
	}
}

// Whoever asks for what at the same time, no part admits more than its capacity, and when all is over just what passed is charged.
func TestTakeInTurnUnderConcurrency(t *testing.T) {
	s := memory.New(memory.Options{})
	a, b := bindPart(t, s, "50/1h", 1), bindPart(t, s, "fixed-window 40/1h", 1)
	c := bindPart(t, s, "sliding-log 1000/1h", 1)
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
