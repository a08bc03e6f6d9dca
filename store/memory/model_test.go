package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

var limits = []string{
	"10/1s", "3/1s burst=5", "7/1s", "gcra 99999/1s", "leaky-bucket 4/1s burst=4", "leaky-queue 4/1s queue=3",
	"cooldown 3/1m", "min-interval 10/1s", "refill-bucket 5/10s burst=12", "fixed-window 5/10s", "quota-reset 5/10s",
	"sliding-log 4/10s", "sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "hybrid 6/6s",
	"exponential 10/10s", "exponential 10/10s strict",
}

func bind(t testing.TB, s *memory.Store, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func do(t testing.TB, b store.Binding, key string, op algorithm.Op, now int64) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(context.Background(), key, op, now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestStoreIsAMapOfPrograms runs random operations on many keys and limits of one store, and on a map of states.
func TestStoreIsAMapOfPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{})
		type limited struct {
			binding store.Binding
			program *algorithm.Program
			states  map[string][]int64
		}
		var all []limited
		for _, text := range limits {
			limit := algorithm.MustParseLimit(text)
			b, err := s.Bind(store.Spec{Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			p, err := algorithm.Compile(limit, time.Nanosecond)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, limited{b, p, map[string][]int64{}})
		}
		now := int64(1_700_000_000_000_000_000)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			l := rapid.SampledFrom(all).Draw(t, "limit")
			key := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))
			op := algorithm.Op{
				Kind: rapid.SampledFrom([]algorithm.Kind{
					algorithm.Take, algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Reset,
				}).Draw(t, "kind"),
				Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 0, 7, 1 << 40}).Draw(t, "cost"),
			}
			now += rapid.SampledFrom([]int64{0, 1, 100, 1e6, 1e8, 3e8, 1e9, 7e9, 3600e9}).Draw(t, "gap")
			state, want := l.program.Apply(l.states[key], op, now)
			l.states[key] = state
			got, err := l.binding.Do(context.Background(), key, op, now)
			if err != nil {
				t.Fatal(err)
			}
			if got != want.Verdict() {
				t.Fatalf("%s: %+v at %d on %s: got %+v, want %+v", l.program.Limit(), op, now, key, got, want.Verdict())
			}
		}
	})
}

// TestTakeManyIsTakeOneByOne compares batches with single requests, keys in common within a batch included.
func TestTakeManyIsTakeOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := algorithm.MustParseLimit(rapid.SampledFrom([]string{"10/1s", "leaky-queue 3/1s"}).Draw(t, "limit"))
		many, _ := memory.New(memory.Options{}).Bind(store.Spec{Limit: limit})
		one, _ := memory.New(memory.Options{}).Bind(store.Spec{Limit: limit})
		now := int64(0)
		for range 5 {
			requests := make([]store.KeyCost, rapid.IntRange(0, 100).Draw(t, "size"))
			for i := range requests {
				requests[i].Key = fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "key"))
				requests[i].Cost = rapid.Int64Range(0, 4).Draw(t, "cost")
			}
			now += rapid.Int64Range(0, 1e9).Draw(t, "gap")
			decisions, err := many.(store.Batcher).TakeMany(context.Background(), requests, now, nil)
			if err != nil || len(decisions) != len(requests) {
				t.Fatal(len(decisions), err)
			}
			for i, r := range requests {
				v, _ := one.Do(context.Background(), r.Key, algorithm.Op{Cost: r.Cost}, now)
				if want := v.Decision(limit.Capacity()); decisions[i] != want {
					t.Fatalf("request %d %+v: got %+v, want %+v", i, r, decisions[i], want)
				}
			}
		}
	})
}
