package swap_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

func partOf(t testing.TB, s *swap.Store, text, key string) store.Part {
	t.Helper()
	return store.Part{Store: s, Binding: bind(t, s, text), Limit: algorithm.MustParseLimit(text), Key: key, Cost: 1}
}

// A joint take that waits for another is dropped when its caller gives up, and has changed nothing.
// Others go on: behind it, and beside it on other keys.
func TestJointTakesThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		var wg sync.WaitGroup
		var order []string
		var mu sync.Mutex
		takeAll := func(ctx context.Context, want error, keys ...string) {
			var parts []store.Part
			for _, key := range keys {
				parts = append(parts, partOf(t, s, "10/1h", key))
			}
			wg.Go(func() {
				_, err := s.TakeAll(ctx, parts, store.OwnClock, nil)
				if !errors.Is(err, want) || want != nil && !errors.Is(err, store.ErrNothingDone) {
					t.Errorf("%q: error %v, want %v", keys, err, want)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, strings.Join(keys, ""))
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		takeAll(t.Context(), nil, "a", "b")
		takeAll(ctx, context.Canceled, "b", "c")
		takeAll(t.Context(), nil, "c", "d") // not held up by a call that has not c yet
		takeAll(t.Context(), nil, "e", "f")
		takeAll(t.Context(), nil, "b", "g")
		cancel()
		wg.Wait()
		if engine.loads != 4 || engine.swaps != 4 || order[0] != "bc" || order[4] != "bg" {
			t.Errorf("%d loads and %d swaps, want 4; ended as %q", engine.loads, engine.swaps, order)
		}
		for key, used := range map[string]int64{"a": 1, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1} {
			if v, err := take(bind(t, s, "10/1h"), key, 0); err != nil || v.Remaining != 10-used {
				t.Errorf("%s: %+v, %v, want %d used", key, v, err, used)
			}
		}
	})
}

// Joint takes that share keys are coalesced: those that come during a swap need one for all.
func TestJointTakesAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, s := slow()
		var wg sync.WaitGroup
		for i := range 50 {
			parts := []store.Part{partOf(t, s, "1000/1h", "all"), partOf(t, s, "10/1h", string(rune('a'+i%26)))}
			wg.Go(func() {
				outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
				if err != nil || outcomes[0].Granted != 1 || outcomes[1].Granted != 1 {
					t.Errorf("%+v, %v", outcomes, err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		wg.Wait()
		if engine.swaps > 3 || s.Counts().Conflicts != 0 {
			t.Errorf("%d swaps for 50 joint takes, %+v", engine.swaps, s.Counts())
		}
	})
}

// If another process changes a key again and again, a joint take is taken in turn after so many lost
// swaps.
func TestTurnAfterLostSwaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &slots{shelf: newShelf()}
		s := swap.New(engine, swap.Options{TurnAfter: 5})
		lost := 0
		engine.during = func(string) (bool, error) {
			together := engine.requests[len(engine.requests)-1] == "a1a2"
			if together {
				lost++
			}
			return together, nil
		}
		parts := []store.Part{partOf(t, s, "10/1h", "a1"), partOf(t, s, "11/1h", "a2")}
		outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
		if err != nil || lost != 5 || len(outcomes) != 2 || outcomes[0].Remaining != 9 || outcomes[1].Remaining != 10 {
			t.Errorf("%+v, %v after %d lost swaps, want 5", outcomes, err, lost)
		}
		if c := s.Counts(); c.Conflicts != 5 || c.Failures != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A shelf of slots swaps together only the keys that begin with the same letter.
type slots struct {
	*shelf
	requests []string // the names of each Load
	alone    bool
}

func (s *slots) Slot(name string) int {
	if s.alone {
		return -1
	}
	return int(name[strings.Index(name, "{")+1])
}

func (s *slots) Load(ctx context.Context, keys []swap.Key) ([]swap.Cell, error) {
	text := ""
	for _, k := range keys {
		text += k.Name[strings.Index(k.Name, "{")+1 : strings.Index(k.Name, "}")]
	}
	s.requests = append(s.requests, text)
	return s.shelf.Load(ctx, keys)
}

// Over several slots, all are looked at, and then taken in the order of the slots. If one denies all the
// same, the others are given back.
func TestTakeAllOverSlots(t *testing.T) {
	engine := &slots{shelf: newShelf()}
	s := swap.New(engine, swap.Options{})
	parts := []store.Part{partOf(t, s, "10/1h", "b1"), partOf(t, s, "10/1h", "a1"), partOf(t, s, "1/1h", "b2"), partOf(t, s, "10/1h", "a2")}
	check := func(what string, requests []string, granted ...int64) {
		t.Helper()
		engine.requests = nil
		outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
		if err != nil || !slices.Equal(engine.requests, requests) {
			t.Fatalf("%s: %v, requests %q, want %q", what, err, engine.requests, requests)
		}
		for i, o := range outcomes {
			if o.Granted != granted[i] {
				t.Errorf("%s: part %d: %+v, want %d granted", what, i, o, granted[i])
			}
		}
	}
	check("admitted", []string{"a1a2", "b1b2", "a1a2", "b1b2"}, 1, 1, 1, 1)
	check("denied", []string{"a1a2", "b1b2"}, 0, 0, -1, 0)
	do := func(kind algorithm.Kind) {
		if _, err := parts[2].Binding.Do(t.Context(), "b2", algorithm.Op{Kind: kind, Cost: 1}, store.OwnClock); err != nil {
			t.Error(err)
		}
	}
	do(algorithm.Reset)
	engine.during = func(name string) (bool, error) { // between the two slots
		if strings.Contains(name, "{a1}") {
			engine.during = nil
			do(algorithm.Take)
		}
		return false, nil
	}
	check("denied after all", []string{"a1a2", "b1b2", "a1a2", "b2", "b1b2", "a1a2"}, 0, 0, -1, 0)
	if v, err := take(parts[1].Binding, "a1", 0); err != nil || v.Remaining != 9 {
		t.Errorf("%+v, %v: want 9 remaining", v, err)
	}
	engine.alone = true
	do(algorithm.Reset)
	check("alone", []string{"b1", "a1", "b2", "a2", "b1", "a1", "b2", "a2"}, 1, 1, 1, 1)
}

// An error after the first slot was charged names the keys that stay charged, and never states that
// nothing was changed.
func TestTakeAllThatFailsHalfway(t *testing.T) {
	broken := errors.New("broken")
	for _, stays := range []bool{false, true} {
		engine := &slots{shelf: newShelf()}
		s := swap.New(engine, swap.Options{})
		parts := []store.Part{partOf(t, s, "10/1h", "a"), partOf(t, s, "10/1h", "b")}
		loads := 0
		engine.before = func(string) error {
			if loads++; loads == 4 || loads == 5 && stays { // two looks, two takes, giving back
				return broken
			}
			return nil
		}
		_, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
		want := map[bool]string{false: "given it back", true: `may stay so: ["weir:1:{a}::10/1h"]`}[stays]
		if !errors.Is(err, broken) || errors.Is(err, store.ErrNothingDone) || strings.Contains(err.Error(), "nothing was") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// A part of another store, or of a store that wraps this one, is taken in turn.
func TestTakeAllOfSeveralStores(t *testing.T) {
	s, other := swap.New(newShelf(), swap.Options{}), swap.New(newShelf(), swap.Options{})
	parts := []store.Part{partOf(t, s, "10/1h", "a"), partOf(t, other, "10/1h", "a")}
	if outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil); err != nil || len(outcomes) != 2 || outcomes[1].Remaining != 9 {
		t.Errorf("%+v, %v", outcomes, err)
	}
	parts[1] = partOf(t, s, "11/1h", "a")
	if _, err := s.TakeAll(t.Context(), parts, 5e9, nil); !errors.Is(err, store.ErrClientTime) {
		t.Errorf("error %v, want ErrClientTime", err)
	}
}
