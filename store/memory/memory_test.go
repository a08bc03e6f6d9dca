package memory_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const second = int64(time.Second)

// take1 asks for one unit.
func take1(t testing.TB, b store.Binding, key string, now int64) bool {
	t.Helper()
	return do(t, b, key, algorithm.Op{Cost: 1}, now).Granted == 1
}

// TestExactUnderConcurrency: at one instant exactly the capacity is admitted, however many ask.
func TestExactUnderConcurrency(t *testing.T) {
	const goroutines, each, keys = 16, 300, 3
	for _, text := range limits {
		t.Run(text, func(t *testing.T) {
			b := bind(t, memory.New(memory.Options{}), text)
			var admitted [keys]atomic.Int64
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for i := range each {
						v, err := b.Do(context.Background(), fmt.Sprint(i%keys), algorithm.Op{Cost: 1}, 5*second)
						if err != nil {
							t.Error(err)
						}
						admitted[i%keys].Add(max(0, v.Granted))
					}
				})
			}
			wg.Wait()
			want := min(algorithm.MustParseLimit(text).Capacity(), goroutines*each/keys)
			for i := range admitted {
				if got := admitted[i].Load(); got != want {
					t.Errorf("key %d: admitted %d, want %d", i, got, want)
				}
			}
		})
	}
}

// TestPitfallW4NoUpdateIsLost: after many takes that race, what is used is exactly what was admitted.
func TestPitfallW4NoUpdateIsLost(t *testing.T) {
	const goroutines, each = 8, 250_000
	for _, text := range []string{"1000000000/1h", "1000000007/1h", "fixed-window 1000000000/1h"} {
		t.Run(text, func(t *testing.T) {
			b := bind(t, memory.New(memory.Options{}), text)
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					n := int64(0)
					for range each / slowdown {
						n += do(t, b, "k", algorithm.Op{Cost: 1}, 5*second).Granted
					}
					admitted.Add(n)
				})
			}
			wg.Wait()
			capacity := algorithm.MustParseLimit(text).Capacity()
			if left := do(t, b, "k", algorithm.Op{}, 5*second).Remaining; admitted.Load() != goroutines*(each/slowdown) || left != capacity-admitted.Load() {
				t.Errorf("%d admitted, and %d missing from the capacity", admitted.Load(), capacity-left)
			}
		})
	}
}

// TestEachKeyOnceWhileTheTableGrows: keys are added by several goroutines at once while the table splits under
// them, and each key is admitted exactly once.
func TestEachKeyOnceWhileTheTableGrows(t *testing.T) {
	for _, text := range []string{"1/1h", "fixed-window 1/1h"} {
		t.Run(text, func(t *testing.T) {
			const keys, goroutines = 30_000, 4
			s := memory.New(memory.Options{})
			b := bind(t, s, text)
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for i := range keys {
						key := fmt.Sprint((i*7919 + g*keys/goroutines) % keys)
						if take1(t, b, key, second) {
							admitted.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if admitted.Load() != keys || s.Stats().Keys != keys {
				t.Errorf("admitted %d, holds %d, want %d", admitted.Load(), s.Stats().Keys, keys)
			}
			for i := range keys {
				if take1(t, b, fmt.Sprint(i), second) {
					t.Fatalf("key %d admitted twice", i)
				}
			}
		})
	}
}

// TestFloodFreesNobody is pitfall S16: a flood of fresh keys does not free a blocked one, nor take memory.
func TestFloodFreesNobody(t *testing.T) {
	const maxKeys, held = 62_500, 50_000 // the share of one limit
	for text, flood := range map[string]int{"1/24h": 10_000_000, "sliding-window 1/24h": 2_000_000} {
		t.Run(text, func(t *testing.T) {
			flood /= slowdown
			if testing.Short() {
				flood = max(flood/10, 2*held)
			}
			s := memory.New(memory.Options{MaxKeys: maxKeys})
			b := bind(t, s, text)
			if !take1(t, b, "blocked", 0) {
				t.Fatal("the first request is denied")
			}
			before := heap()
			var admitted int64
			key := make([]byte, 0, 32)
			for i := range flood {
				key = fmt.Appendf(key[:0], "flood:%d", i)
				if take1(t, b, string(key), int64(i)) {
					admitted++
				}
			}
			if admitted != held-1 {
				t.Errorf("admitted %d fresh keys, want %d", admitted, held-1)
			}
			if take1(t, b, "blocked", int64(flood)) {
				t.Error("the flood freed a blocked key")
			}
			if got := s.Stats(); got.Keys != held || got.Overflowed != int64(flood-held+1) {
				t.Errorf("%+v, want %d keys and %d overflowed", got, held, flood-held+1)
			}
			if grown, most := heap()-before, int64(held*200); grown > most {
				t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
			}
			runtime.KeepAlive(s)
		})
	}
}

// heap returns the bytes in use on the heap. It collects garbage until the number is stable,
// because cleanups free more.
func heap() int64 {
	var m runtime.MemStats
	for last := uint64(math.MaxUint64); ; last = m.HeapAlloc {
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc >= last-min(last, 16<<10) {
			return int64(m.HeapAlloc)
		}
	}
}

// TestFullStoreTakesNewKeysWhenOldOnesAreFresh: expired keys make room, for states of both kinds at once.
func TestFullStoreTakesNewKeysWhenOldOnesAreFresh(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 112}) // shares of 50 each
	word, states := bind(t, s, "1/1s"), bind(t, s, "fixed-window 1/1s")
	for i := range 50 {
		take1(t, word, fmt.Sprint(i), 0)
		take1(t, states, fmt.Sprint(i), 0)
	}
	v := do(t, word, "new", algorithm.Op{Cost: 1}, second/2)
	if v.Granted != -1 || v.Wait != time.Second/2 {
		t.Errorf("a new key in a full store: %+v, want a denial for 500ms", v)
	}
	if v := do(t, word, "new", algorithm.Op{}, second/2); v.Granted != 0 || v.Remaining != 0 {
		t.Errorf("a peek at a new key in a full store: %+v, want nothing remaining", v)
	}
	for i := range 50 {
		for _, b := range []store.Binding{word, states} {
			if !take1(t, b, fmt.Sprint("later", i), second) {
				t.Fatalf("key %d denied though all others are fresh", i)
			}
		}
	}
	if got := s.Stats(); got.Keys > 112 || got.Reclaimed < 90 {
		t.Errorf("%+v", got)
	}
}

// TestOverflowShare: new keys of a full store share one budget.
func TestOverflowShare(t *testing.T) {
	for _, text := range []string{"5/1h", "quota-reset 5/1h"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 12, Overflow: memory.Share})
			b := bind(t, s, text)
			for i := range 10 {
				take1(t, b, fmt.Sprint(i), 0)
			}
			admitted := 0
			for i := range 100 {
				if take1(t, b, fmt.Sprint("new", i), 0) {
					admitted++
				}
			}
			if admitted != 5 {
				t.Errorf("new keys were admitted %d times, want 5", admitted)
			}
			if !take1(t, b, "3", 0) {
				t.Error("a known key is denied")
			}
		})
	}
}

// TestOverflowShareIsOneBudget: bindings of one limit share it, and a key that is added later starts with its debt.
func TestOverflowShareIsOneBudget(t *testing.T) {
	for _, text := range []string{"5/1h", "quota-reset 5/1h"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 1, Overflow: memory.Share})
			take1(t, bind(t, s, text), "first", 0)
			admitted := int64(0)
			for range 4 {
				admitted += max(0, do(t, bind(t, s, text), "k", algorithm.Op{Cost: 5}, 0).Granted)
			}
			do(t, bind(t, s, text), "first", algorithm.Op{Kind: algorithm.Reset}, 0)
			admitted += max(0, do(t, bind(t, s, text), "k", algorithm.Op{Cost: 5}, 0).Granted)
			if admitted != 5 {
				t.Errorf("one new key was admitted %d units at one instant, want 5", admitted)
			}
		})
	}
}

// TestPeekAtFullStoreLooksForRoom: a peek at a new key says what a take would find.
func TestPeekAtFullStoreLooksForRoom(t *testing.T) {
	for _, text := range []string{"5/1s", "fixed-window 5/1s"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 12})
			b := bind(t, s, text)
			for i := range 10 {
				take1(t, b, fmt.Sprint(i), 0)
			}
			if got := do(t, b, "new", algorithm.Op{}, 3600*second).Remaining; got != 5 {
				t.Errorf("%d remaining for a new key, want 5", got)
			}
		})
	}
}

// TestGivenTimesOfOthersBlockNobody: a key that is used and forgotten at a later time does not take others with it.
func TestGivenTimesOfOthersBlockNobody(t *testing.T) {
	const year = 365 * 24 * 3600 * second
	for _, text := range []string{"10/1m", "fixed-window 10/1m"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{})
			b := bind(t, s, text)
			for i := range 2000 {
				take1(t, b, fmt.Sprint("now", i), 60*second)
			}
			for i := range 30_000 {
				take1(t, b, fmt.Sprint("ahead", i), year)
			}
			for i := range 1000 {
				if v := do(t, b, fmt.Sprint("new", i), algorithm.Op{Cost: 1}, 120*second); v.Granted != 1 {
					t.Fatalf("key %d is denied: %+v", i, v)
				}
			}
		})
	}
}

// TestForgettingSurvivesTimeThatStepsBack: a key that was forgotten is not new again at an earlier time.
func TestForgettingSurvivesTimeThatStepsBack(t *testing.T) {
	for _, text := range []string{"1/1s", "quota-reset 1/1s"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 1})
			b := bind(t, s, text)
			take1(t, b, "a", 10*second) // pays until 11s
			if !take1(t, b, "b", 20*second) {
				t.Fatal("a was not forgotten")
			}
			do(t, b, "b", algorithm.Op{Kind: algorithm.Reset}, 20*second)
			if v := do(t, b, "a", algorithm.Op{Cost: 1}, 10*second); v.Granted == 1 {
				t.Error("time that steps back made a key new")
			}
		})
	}
}

// TestSweepLosesNoUpdate is pitfall S15: keys are forgotten while others are decided, and no window
// ever holds more than the limit.
func TestSweepLosesNoUpdate(t *testing.T) {
	for _, text := range []string{"100/10ms burst=100", "fixed-window 100/10ms", "sliding-log 100/10ms"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{MaxKeys: 64})
			b := bind(t, s, text)
			var now, admitted atomic.Int64
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 4000 {
						at := now.Add(int64(time.Microsecond))
						take1(t, b, fmt.Sprint("other", g, i), at)
						if take1(t, b, "k", at) {
							admitted.Add(1)
						}
					}
				})
			}
			wg.Wait()
			elapsed := now.Load()
			if most := 100 + 100*(elapsed/int64(10*time.Millisecond)+1); admitted.Load() > most {
				t.Errorf("admitted %d in %v, want at most %d", admitted.Load(), time.Duration(elapsed), most)
			}
		})
	}
}

// TestSeparate: names and limits have states of their own, and TimeDebt shares them between limits.
func TestSeparate(t *testing.T) {
	s := memory.New(memory.Options{})
	spec := store.Spec{Limit: algorithm.MustParseLimit("1/1h")}
	named, other := spec, spec
	named.Name = "a"
	other.Limit.Period *= 2
	for _, spec := range []store.Spec{spec, named, other} {
		b, err := s.Bind(spec)
		if err != nil {
			t.Fatal(err)
		}
		if !take1(t, b, "k", 0) || take1(t, b, "k", 0) {
			t.Errorf("%+v does not have a state of its own", spec)
		}
	}
	shared := func(text string) store.Binding {
		b, err := s.Bind(store.Spec{Name: "shared", Limit: algorithm.MustParseLimit(text), TimeDebt: true})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	now := time.Now().UnixNano()
	if !take1(t, shared("3/1m"), "k", now) {
		t.Fatal("the first request is denied")
	}
	if v := do(t, shared("6/1m"), "k", algorithm.Op{}, now); v.Remaining != 4 {
		t.Errorf("20s of debt leave %d of 6 per minute, want 4", v.Remaining)
	}
	for _, text := range []string{"fixed-window 1/1s", "999999999/1s", "1/100h burst=1000"} {
		if _, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text), TimeDebt: true}); err == nil {
			t.Errorf("%s can't share its state by time, and was not refused", text)
		}
	}
}

// TestOwnClock: the store's clocks advance, and do not run away: five units need four intervals.
func TestOwnClock(t *testing.T) {
	const interval, units = 20 * time.Millisecond, 5
	for _, resolution := range []time.Duration{0, time.Millisecond} {
		t.Run(resolution.String(), func(t *testing.T) {
			start := time.Now()
			s := memory.New(memory.Options{ClockResolution: resolution})
			defer s.Close()
			b := bind(t, s, "1/20ms")
			for admitted := 0; admitted < units; {
				if take1(t, b, "k", store.OwnClock) {
					admitted++
				}
			}
			if took := time.Since(start); took < (units-1)*interval {
				t.Errorf("%d units were admitted in %v, want %v or more", units, took, (units-1)*interval)
			}
		})
	}
}

// TestTimeOutOfReach: a time that a word can't hold is an error, not a wrong answer.
func TestTimeOutOfReach(t *testing.T) {
	b := bind(t, memory.New(memory.Options{}), "3/1s")
	if _, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, -algorithm.MaxTime); err == nil {
		t.Error("a time in 1865 was accepted for a limit of thirds of a nanosecond")
	}
}

// TestConcurrentKinds mixes all operations on few keys, for the race detector, and checks that nothing is left over.
func TestConcurrentKinds(t *testing.T) {
	for _, text := range []string{"20/1h", "sliding-window 20/1h"} {
		t.Run(text, func(t *testing.T) {
			s := memory.New(memory.Options{})
			b := bind(t, s, text)
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 2000 {
						op := algorithm.Op{Kind: algorithm.Kind((i + g) % 4), Cost: int64(i % 5)}
						v := do(t, b, fmt.Sprint(i%7), op, second)
						if v.Remaining < 0 || v.Remaining > 20 {
							t.Errorf("%+v: %+v", op, v)
						}
					}
				})
			}
			wg.Wait()
			for i := range 7 {
				do(t, b, fmt.Sprint(i), algorithm.Op{Kind: algorithm.Reset}, second)
			}
			if n := s.Stats().Keys; n != 0 {
				t.Errorf("%d keys after all were reset", n)
			}
		})
	}
}

// TestNoKeyIsAnOwner: a key that spells a limit's owner does not meet that of another limit.
func TestNoKeyIsAnOwner(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, text := range []string{"1/1h", "1/2h"} {
		if !take1(t, bind(t, s, text), "\x00"+text, 0) {
			t.Errorf("the key of %s was used by another limit", text)
		}
	}
	if !take1(t, bind(t, s, "1/1h"), "\x001/2h", 0) || !take1(t, bind(t, s, "1/2h"), "\x001/1h", 0) {
		t.Error("key and limit exchanged are the same state")
	}
}

// TestWholeBurstAtOnce: what a fresh key admits at one instant it also admits in one batch, and to requests that
// race, though each has read the clock at its own time.
func TestWholeBurstAtOnce(t *testing.T) {
	s := memory.New(memory.Options{})
	b := bind(t, s, "2/8760h")
	for i := range 2000 {
		key := fmt.Sprint(i)
		decisions, err := b.(store.Batcher).TakeMany(t.Context(), []store.KeyCost{{Key: key, Cost: 1}, {Key: key, Cost: 1}}, store.OwnClock, nil)
		if err != nil || !decisions[0].Allowed || !decisions[1].Allowed {
			t.Fatalf("%+v, %v", decisions, err)
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { admitted.Add(do(t, b, "racing"+key, algorithm.Op{Cost: 1}, store.OwnClock).Granted) })
		}
		wg.Wait()
		if admitted.Load() != 2 {
			t.Fatalf("round %d: two that race for two units got %d", i, admitted.Load())
		}
	}
}
