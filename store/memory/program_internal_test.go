package memory

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// checkOwners compares the counts of all owners, and of the store, with the records.
func checkOwners(t interface{ Errorf(string, ...any) }, s *Store) {
	type counts struct {
		keys, bytes int64
		programs    map[*algorithm.Program]int
	}
	want := map[*owner]*counts{}
	common := int64(0)
	for i := range s.states.shards {
		h := &s.states.shards[i]
		common += wordBytes*int64(cap(h.scratch)) + indexBytes*int64(h.places-len(h.entries))
		for _, e := range h.index {
			o := s.owners.of(e.fp.lo)
			if want[o] == nil {
				want[o] = &counts{programs: map[*algorithm.Program]int{}}
			}
			want[o].keys++
			want[o].bytes += entryBytes + indexBytes + wordBytes*int64(e.words)
			want[o].programs[e.account.Program]++
		}
	}
	sum := common
	for i := commonOwner; i < s.owners.used; i++ {
		o, w := s.owners.byIndex[i].Load(), counts{}
		if want[o] != nil {
			w = *want[o]
		}
		w.bytes += programBytes * int64(len(w.programs))
		sum += w.bytes
		if o.keys.Load() != w.keys || o.bytes.Load() != w.bytes || !maps.Equal(o.programs.m, w.programs) {
			t.Errorf("%s: %d keys, %d bytes, programs %v; want %+v", o.label, o.keys.Load(), o.bytes.Load(), o.programs.m, w)
		}
	}
	if got := s.room.bytes.Load(); got != sum {
		t.Errorf("%d bytes are counted, want %d", got, sum)
	}
}

var changes = []string{
	"10/1h", "fixed-window 9/1m", "sliding-log 20/10s", "quota-reset 5/1h", "sliding-buckets 8/10s cells=700", "concurrent 4 lease=10s",
}

// TestProgramsAreCountedWithTheirRecords: whatever the operations, and also in a full store, each
// owner is charged for the Programs of its records, and for nothing without records.
func TestProgramsAreCountedWithTheirRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{
			MaxBytes: MinMaxBytes, Overflow: rapid.SampledFrom([]Overflow{Deny, Share}).Draw(t, "overflow"),
			MaxKeys: rapid.SampledFrom([]int{0, 3}).Draw(t, "keys"),
		})
		now := int64(1_700_000_000_000_000_000)
		bind := func(name, text string) store.Binding {
			b, err := s.Bind(store.Spec{Name: name, Limit: algorithm.MustParseLimit(text)})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		ballast := bind("ballast", "sliding-buckets 9/2h cells=3000")
		for i := range rapid.IntRange(0, 60).Draw(t, "ballast") {
			_, _ = ballast.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, now)
		}
		part := func() store.Part {
			limit := rapid.SampledFrom(changes).Draw(t, "limit")
			p := store.Part{
				Store: s, Name: fmt.Sprint("name", rapid.IntRange(0, 1).Draw(t, "name")), Limit: algorithm.MustParseLimit(limit),
				Key: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key")), Cost: rapid.Int64Range(0, 5).Draw(t, "cost"),
				ID: rapid.Int64Range(0, 3).Draw(t, "id"), Life: rapid.SampledFrom([]int64{1e9, 3600e9}).Draw(t, "life"),
			}
			p.Binding = bind(p.Name, limit)
			return p
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1e9, 20e9, 4000e9}).Draw(t, "gap")
			p := part()
			if rapid.IntRange(0, 3).Draw(t, "together") == 0 {
				other := part()
				other.Key += "!" // no two parts are of one state
				if _, err := s.TakeAll(context.Background(), []store.Part{p, other}, now, nil); err != nil {
					t.Fatal(err)
				}
			} else {
				op := algorithm.Op{
					Kind: algorithm.Kind(rapid.IntRange(int(algorithm.Take), int(algorithm.Commit)).Draw(t, "kind")),
					Cost: p.Cost, ID: p.ID, Life: p.Life, End: now + p.Life, Late: rapid.Bool().Draw(t, "late"),
				}
				if _, err := p.Binding.Do(context.Background(), p.Key, op, now); err != nil {
					t.Fatal(err)
				}
			}
			checkOwners(t, s)
		}
	})
}

// TestProgramsAreCountedInAnyOrder: records of one owner change their limits at the same time.
func TestProgramsAreCountedInAnyOrder(t *testing.T) {
	s := New(Options{MaxBytes: MinMaxBytes})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 3000 {
				b, err := s.Bind(store.Spec{Name: "name", Limit: algorithm.MustParseLimit(fmt.Sprintf("5/%dms", 1000+i/4))})
				if err != nil {
					t.Error(err)
					return
				}
				op := algorithm.Op{Cost: 1}
				if i%7 == 0 {
					op.Kind = algorithm.Reset
				}
				if _, err := b.Do(context.Background(), fmt.Sprint((g+i)%50), op, int64(i)*1e7); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	checkOwners(t, s)
}
