package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const benchedKeys = 1 << 14

func benchedNames() []string {
	keys := make([]string, benchedKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%d", i)
	}
	return keys
}

// BenchmarkTake is a Take of a key with a state of several words, and of keys under a name, which have accounts.
func BenchmarkTake(b *testing.B) {
	keys := benchedNames()
	for _, spec := range []store.Spec{
		{Limit: algorithm.MustParseLimit("1000000/8760h")},
		{Limit: algorithm.MustParseLimit("1000000/8760h"), Name: "api"},
		{Limit: algorithm.MustParseLimit("sliding-window 1000000/8760h")},
		{Limit: algorithm.MustParseLimit("sliding-window 1000000/8760h"), Name: "api"},
		{Limit: algorithm.MustParseLimit("1000000/month"), Name: "quota"},
		{Limit: algorithm.MustParseLimit("sliding-log 1000/1ms")},
	} {
		b.Run(fmt.Sprintf("%q %v", spec.Name, spec.Limit), func(b *testing.B) {
			binding, err := memory.New(memory.Options{}).Bind(spec)
			if err != nil {
				b.Fatal(err)
			}
			for _, key := range keys {
				do(b, binding, key, algorithm.Op{Cost: 1}, store.OwnClock)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := binding.Do(context.Background(), keys[i%benchedKeys], algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkTakeAll is two limits of one key, in one step.
func BenchmarkTakeAll(b *testing.B) {
	keys := benchedNames()
	s := memory.New(memory.Options{})
	var parts []store.Part
	for _, text := range []string{"1000000/8760h", "fixed-window 1000000/24h"} {
		l := algorithm.MustParseLimit(text)
		binding, err := s.Bind(store.Spec{Limit: l, Name: text})
		if err != nil {
			b.Fatal(err)
		}
		for _, key := range keys {
			do(b, binding, key, algorithm.Op{Cost: 1}, store.OwnClock)
		}
		parts = append(parts, store.Part{Store: s, Binding: binding, Limit: l, Name: text, Cost: 1})
	}
	for name, take := range map[string]func(context.Context, []store.Part) ([]store.Outcome, error){
		"store": func(ctx context.Context, parts []store.Part) ([]store.Outcome, error) {
			return store.TakeAll(ctx, parts, store.OwnClock)
		},
		"joiner": func(ctx context.Context, parts []store.Part) ([]store.Outcome, error) {
			return s.TakeAll(ctx, parts, store.OwnClock, make([]store.Outcome, 0, len(parts)))
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				parts[0].Key, parts[1].Key = keys[i%benchedKeys], keys[i%benchedKeys]
				if _, err := take(context.Background(), parts); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
