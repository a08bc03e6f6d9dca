package memory_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A pair is two limits that requests must pass together.
type pair struct {
	s     *memory.Store
	a, b  named
	names [2]string
}

func newPair(t testing.TB, o memory.Options, first, second string) pair {
	s := memory.New(o)
	return pair{s, bindNamed(t, s, "a", first), bindNamed(t, s, "b", second), [2]string{"a", "b"}}
}

func (p pair) parts(keyA, keyB string, cost int64) []store.Part {
	return []store.Part{p.a.part(p.s, "a", keyA, cost), p.b.part(p.s, "b", keyB, cost)}
}

func takeAll(t testing.TB, parts []store.Part, now int64) []store.Outcome {
	t.Helper()
	outcomes, err := store.TakeAll(context.Background(), parts, now)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func passed(outcomes []store.Outcome) bool {
	for _, o := range outcomes {
		if o.Granted < 0 {
			return false
		}
	}
	return true
}

// Pitfall S5: of several limits all are charged or none, and nothing is there of a key that was only looked at.
func TestPitfallS5AllOrNothing(t *testing.T) {
	p := newPair(t, memory.Options{}, "5/1h", "fixed-window 2/1h")
	for i, want := range [][2]algorithm.Verdict{
		{{Granted: 1, Remaining: 4}, {Granted: 1, Remaining: 1}},
		{{Granted: 1, Remaining: 3}, {Granted: 1, Remaining: 0}},
		{{Granted: 0, Remaining: 3}, {Granted: -1, Remaining: 0}},
		{{Granted: 0, Remaining: 3}, {Granted: -1, Remaining: 0}},
	} {
		for part, o := range takeAll(t, p.parts("k", "k", 1), second) {
			if o.Granted != want[part].Granted || o.Remaining != want[part].Remaining || o.At != second {
				t.Errorf("request %d, part %d: %+v, want %+v", i, part, o, want[part])
			}
		}
	}
	keys := p.s.Stats().Keys
	if takeAll(t, p.parts("never seen", "k", 1), second); p.s.Stats().Keys != keys {
		t.Errorf("%d keys after a denial, want %d", p.s.Stats().Keys, keys)
	}
}

// Pitfall S6: requests that name the same keys in opposite order neither wait for each other for ever nor charge twice, and one that names a limit
// twice is charged once.
func TestPitfallS6OppositeOrder(t *testing.T) {
	const goroutines, each = 8, 100_000 / slowdown / 4
	p := newPair(t, memory.Options{}, "1000000000/1h", "fixed-window 999999937/1h")
	var granted atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				parts := p.parts(fmt.Sprint(i%3), fmt.Sprint(i%5), 1)
				if g%2 == 1 {
					parts[0], parts[1] = parts[1], parts[0]
				}
				if g%4 == 3 {
					parts = append(parts, parts[0])
				}
				outcomes, err := p.s.TakeAll(context.Background(), parts[:2], second, nil)
				if g%4 == 3 {
					outcomes, err = store.TakeAll(context.Background(), parts, second)
					granted.Add(1) // for the one above
				}
				if err != nil || !passed(outcomes) {
					t.Errorf("%+v, %v", outcomes, err)
				}
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	used := [2]int64{}
	for i := range 5 {
		used[0] += 1_000_000_000 - do(t, p.a.binding, fmt.Sprint(i), algorithm.Op{}, second).Remaining
		used[1] += 999_999_937 - do(t, p.b.binding, fmt.Sprint(i), algorithm.Op{}, second).Remaining
	}
	if want := granted.Load(); used != [2]int64{want, want} {
		t.Errorf("%v are used, want %d of each", used, want)
	}
}

// Nobody sees half of a request: while one is decided, the two limits are always charged alike.
func TestNobodySeesHalf(t *testing.T) {
	p := newPair(t, memory.Options{}, "fixed-window 1000000/1h", "fixed-window 1000000/1h")
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				takeAll(t, p.parts("k", "k", 1), second)
				takeAll(t, p.parts("k", "k", 2_000_000), second) // denied
			}
		})
	}
	for i := range 20_000 {
		o, err := p.s.TakeAll(context.Background(), p.parts("k", "k", 0), second, nil)
		if err != nil || o[0].Remaining != o[1].Remaining {
			t.Errorf("look %d: %+v, %v", i, o, err)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
}

// TestTogetherInAFullStore: new keys are denied, nothing stays reserved, and there is room again when others are fresh.
func TestTogetherInAFullStore(t *testing.T) {
	p := newPair(t, memory.Options{MaxKeys: 3}, "5/1s", "fixed-window 5/1s")
	if !passed(takeAll(t, p.parts("k", "k", 1), 0)) {
		t.Fatal("the first request is denied")
	}
	for _, keys := range [][2]string{{"x", "y"}, {"y", "x"}} {
		o := takeAll(t, p.parts(keys[0], keys[1], 1), 0)
		if passed(o) {
			t.Errorf("two new keys where there is room for one: %+v", o)
		}
	}
	if s := p.s.Stats(); s.Keys != 2 || s.Overflowed != 2 {
		t.Errorf("%+v: want 2 keys, and 2 that found the store full", s)
	}
	if o := takeAll(t, p.parts("x", "k", 1), 0); !passed(o) {
		t.Errorf("one new key where there is room for one: %+v", o)
	}
	if o := takeAll(t, p.parts("z", "k", 1), 0); o[0].Granted != -1 || o[0].Wait != 200*time.Millisecond || o[1].Granted != 0 || o[1].Remaining != 3 {
		t.Errorf("a new key in a full store: %+v; want a denial until the first is fresh, and the other part as it was", o)
	}
	if o := takeAll(t, p.parts("z", "k", 0), 0); o[0].Granted != 0 || o[0].Remaining != 0 || o[1].Remaining != 3 {
		t.Errorf("a look at a new key in a full store: %+v", o)
	}
	if o := takeAll(t, p.parts("y", "z", 5), 2*second); !passed(o) || p.s.Stats().Keys > 3 {
		t.Errorf("when all others are fresh: %+v, %+v", o, p.s.Stats())
	}
}

// TestTogetherUnderShare: new keys of a full store share a budget also where several limits are asked.
func TestTogetherUnderShare(t *testing.T) {
	p := newPair(t, memory.Options{MaxKeys: 2, Overflow: memory.Share}, "5/1h", "fixed-window 3/1h")
	takeAll(t, p.parts("k", "k", 1), 0)
	admitted := 0
	for i := range 20 {
		if passed(takeAll(t, p.parts(fmt.Sprint(i), "other", 1), 0)) {
			admitted++
		}
	}
	if admitted != 3 {
		t.Errorf("new keys were admitted %d times, want 3", admitted)
	}
	if v := do(t, p.a.binding, "any", algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 9}, 0); v.Granted != 2 {
		t.Errorf("%+v: want the 2 that are left of 5", v)
	}
}

// TestTogetherWithTimeThatStepsBack: a key that may be one that was forgotten is denied.
func TestTogetherWithTimeThatStepsBack(t *testing.T) {
	p := newPair(t, memory.Options{MaxKeys: 2}, "1/1s", "fixed-window 100/1h")
	takeAll(t, p.parts("a", "k", 1), 10*second)
	if !passed(takeAll(t, p.parts("b", "k", 1), 20*second)) {
		t.Fatal("a was not forgotten")
	}
	do(t, p.a.binding, "b", algorithm.Op{Kind: algorithm.Reset}, 20*second)
	if o := takeAll(t, p.parts("a", "k", 1), 10*second); o[0].Granted != -1 || o[1].Granted != 0 || o[1].Remaining != 98 {
		t.Errorf("time that steps back: %+v", o)
	}
}

// TestTogetherWithWords: limits without a name stand beside those that have one.
func TestTogetherWithWords(t *testing.T) {
	p := newPair(t, memory.Options{}, "5/1h", "fixed-window 3/1h")
	word := store.Part{Store: p.s, Binding: bind(t, p.s, "2/1h"), Limit: algorithm.MustParseLimit("2/1h"), Key: "k", Cost: 1}
	for i, want := range []bool{true, true, false} {
		if o := takeAll(t, append(p.parts("k", "k", 1), word), second); passed(o) != want {
			t.Errorf("request %d: %+v", i, o)
		}
	}
	if o := takeAll(t, p.parts("k", "k", 0), second); o[0].Remaining != 3 || o[1].Remaining != 1 {
		t.Errorf("after two: %+v", o)
	}
}

// TestTogetherWhileKeysComeAndGo: keys are added and forgotten while requests for others are decided, and no update is lost.
func TestTogetherWhileKeysComeAndGo(t *testing.T) {
	p := newPair(t, memory.Options{MaxKeys: 2000}, "fixed-window 1000000/24h", "sliding-log 1/1us")
	var now, admitted atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 40_000 / slowdown {
				if passed(takeAll(t, p.parts("k", fmt.Sprint(g, i), 1), now.Add(100))) {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if used := 1_000_000 - do(t, p.a.binding, "k", algorithm.Op{}, now.Load()).Remaining; used != admitted.Load() || used < 1000 {
		t.Errorf("%d are used, and %d were admitted", used, admitted.Load())
	}
	if s := p.s.Stats(); s.Keys > 2000 || s.Reclaimed == 0 {
		t.Errorf("%+v", s)
	}
}

// TestTogetherOfMany: the new keys among many, which come first, make none of the others be forgotten, though all of these are fresh again.
func TestTogetherOfMany(t *testing.T) {
	const known, many = 40_000, 2000
	s := memory.New(memory.Options{})
	n := bindNamed(t, s, "name", "1/1s")
	for i := range known {
		take1(t, n.binding, fmt.Sprint(i), 0)
	}
	var parts []store.Part
	for i := range many {
		parts = append(parts, n.part(s, "name", fmt.Sprint("!", i), 1), n.part(s, "name", fmt.Sprint(i*known/many), 1))
	}
	if !passed(takeAll(t, parts, 2*second)) {
		t.Fatal("denied, though all are fresh")
	}
	for _, p := range parts {
		if v := do(t, n.binding, p.Key, algorithm.Op{}, 2*second); v.Remaining != 0 {
			t.Fatalf("the charge of %s is lost: %+v", p.Key, v)
		}
	}
}
