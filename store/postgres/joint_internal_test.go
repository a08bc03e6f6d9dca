package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

var jointNoon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixNano()

// testStore is a store on a table, which never takes joints in turn.
func testStore(t testing.TB, table string) *Store {
	t.Helper()
	s, err := Open(t.Context(), SharedServer(t).URL(), Options{Table: table, TrustClientTime: true, Timeout: 10 * time.Minute, SweepEvery: -1, turnAfter: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func partOf(t testing.TB, s *Store, text, key string) store.Part {
	t.Helper()
	spec := store.Spec{Limit: algorithm.MustParseLimit(text), Name: "n " + text}
	b, err := s.Bind(spec)
	if err != nil {
		t.Fatal(err)
	}
	return store.Part{Store: s, Binding: b, Limit: spec.Limit, Name: spec.Name, Key: key, Cost: 1}
}

func passed(t testing.TB, s *Store, parts []store.Part) bool {
	t.Helper()
	outcomes, err := s.TakeAll(t.Context(), parts, jointNoon, nil)
	if err != nil || len(outcomes) != len(parts) {
		t.Error(outcomes, err)
		return false
	}
	return !slices.ContainsFunc(outcomes, func(o store.Outcome) bool { return o.Granted != 1 })
}

// Of one store no two rounds have a name in common: whatever is asked for at one time, none loses a swap, and all is charged.
func TestJointsOfOneProcessDoNotCompete(t *testing.T) {
	s := testStore(t, tableOf(t))
	texts := []string{"500/1h", "fixed-window 400/1h", "sliding-log 300/1h", "300/year", "concurrent 200 lease=1h"}
	var charged [5][4]atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(i)))
		wg.Go(func() {
			for range 60 {
				var parts []store.Part
				var of []*atomic.Int64
				for _, n := range random.Perm(5)[:2+random.IntN(3)] {
					key := random.IntN(4)
					parts, of = append(parts, partOf(t, s, texts[n], fmt.Sprint(key))), append(of, &charged[n][key])
				}
				if passed(t, s, parts) {
					for _, c := range of {
						c.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := s.Counts().Conflicts; n != 0 {
		t.Errorf("%d swaps were lost", n)
	}
	for n, text := range texts {
		for key := range 4 {
			p := partOf(t, s, text, fmt.Sprint(key))
			v, err := p.Binding.Do(t.Context(), p.Key, algorithm.Op{}, jointNoon)
			if want := p.Limit.Capacity() - charged[n][key].Load(); err != nil || v.Remaining != want {
				t.Errorf("%s, key %d: %d remain, %v, want %d", text, key, v.Remaining, err, want)
			}
		}
	}
}

// Pitfall S6: from several processes, in several orders: nobody sees one part charged and not the other, as many pass as there is room for, and there
// is no deadlock.
func TestS6JointsAreOneStep(t *testing.T) {
	table := tableOf(t)
	const most = 60
	var granted atomic.Int64
	looking, done := make(chan struct{}), make(chan struct{})
	var wg, watch sync.WaitGroup
	for i := range 3 {
		s := testStore(t, table)
		a, b := partOf(t, s, fmt.Sprintf("fixed-window %d/1h", most), "a"), partOf(t, s, "fixed-window 1000/1h", "b")
		for j := range 6 {
			parts := [][]store.Part{{a, b}, {b, a}}[(i+j)%2]
			wg.Go(func() {
				<-looking
				for range 15 {
					if passed(t, s, parts) {
						granted.Add(1)
					}
				}
			})
		}
	}
	e := testStore(t, table).engine
	looks := 0
	watch.Go(func() {
		for {
			var counts []int64
			if err := e.pool.QueryRow(context.Background(), e.table.in(`SELECT coalesce(array_agg(words[2]), '{}') FROM TABLE`)).Scan(&counts); err != nil {
				t.Error(err)
				return
			}
			if len(counts) == 1 || len(counts) == 2 && counts[0] != counts[1] {
				t.Errorf("%v were charged at one time", counts)
			}
			if looks++; looks == 1 {
				close(looking)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	wg.Wait()
	close(done)
	watch.Wait()
	if granted.Load() != most || looks == 0 {
		t.Errorf("%d passed, want %d; there were %d looks", granted.Load(), most, looks)
	}
}

// A swap of several replaces all or none, waits for nobody who has a lock, and for those who insert.
func TestSwapOfSeveral(t *testing.T) {
	e := testStore(t, tableOf(t)).engine
	record := func(n int64) swap.Record { return swap.Record{Head: fmt.Sprint(n, "/1h"), State: []int64{n}} }
	try := func(what string, want bool, changes ...swap.Change) {
		t.Helper()
		if swapped, err := e.Swap(t.Context(), changes); err != nil || swapped != want {
			t.Errorf("%s: swapped is %v, %v", what, swapped, err)
		}
	}
	there := func(what string, want ...swap.Record) {
		t.Helper()
		cells, err := e.Load(t.Context(), []swap.Key{{Name: "a"}, {Name: "b"}, {Name: "c"}})
		if err != nil || len(cells) != 3 {
			t.Fatal(cells, err)
		}
		for i, cell := range cells {
			if cell.Head != want[i].Head || !slices.Equal(cell.State, want[i].State) || cell.Now != cells[0].Now {
				t.Errorf("%s: record %d is %+v, want %+v", what, i, cell, want[i])
			}
		}
	}
	none := swap.Record{}
	to := func(name string, old, next swap.Record) swap.Change {
		return swap.Change{Key: swap.Key{Name: name}, Old: swap.Cell{Record: old}, Next: next, Life: time.Hour}
	}
	try("two new ones", true, to("a", none, record(1)), to("b", none, record(2)))
	there("two new ones", record(1), record(2), none)
	try("one new, one there", true, to("b", record(2), record(3)), to("c", none, record(4)))
	there("one new, one there", record(1), record(3), record(4))
	for what, other := range map[string]swap.Change{
		"other words": to("b", swap.Record{Head: "3/1h", State: []int64{4}}, record(9)), "another head": to("b", swap.Record{Head: "4/1h", State: []int64{3}}, record(9)),
		"what was none": to("b", none, record(9)), "what is none": to("d", record(3), record(9)), "no words": to("b", swap.Record{Head: "3/1h"}, record(9)),
	} {
		try(what, false, to("a", record(1), record(9)), other)
		try(what, false, to("Z", none, record(9)), other)
		there(what, record(1), record(3), record(4))
	}
	try("a head alone", true, to("b", record(3), swap.Record{Head: "x"}), to("c", record(4), record(5)))
	there("a head alone", record(1), swap.Record{Head: "x"}, record(5))
	try("from a head alone", true, to("b", swap.Record{Head: "x"}, record(3)), to("c", record(5), swap.Record{State: []int64{7}}))
	there("from a head alone", record(1), record(3), swap.Record{State: []int64{7}})

	tx := begin(t)
	if _, err := tx.Exec(t.Context(), e.table.in(`SELECT FROM TABLE WHERE name = 'b' FOR UPDATE`)); err != nil {
		t.Fatal(err)
	}
	try("a row that is locked", false, to("a", record(1), record(9)), to("b", record(3), record(9)))
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx = begin(t)
	if _, err := tx.Exec(t.Context(), e.table.in(`INSERT INTO TABLE VALUES ('d', '{1}', now() + interval '1 h')`)); err != nil {
		t.Fatal(err)
	}
	meanwhile(t, e, tx, func() {
		try("a row that another inserts", false, to("a", record(1), record(9)), to("c", swap.Record{State: []int64{7}}, record(9)), to("d", none, record(9)))
	})
	there("a row that another inserts", record(1), record(3), swap.Record{State: []int64{7}})
	var expires int
	if err := e.pool.QueryRow(t.Context(), e.table.in(`SELECT count(*) FROM TABLE WHERE expires BETWEEN now() + interval '50 min' AND now() + interval '1 h'`)).Scan(&expires); err != nil || expires != 4 {
		t.Errorf("%d rows expire in an hour, %v", expires, err)
	}
}

// A swap replaces a row whose words are no list, alone and together with others, unless it has changed.
func TestSwapOfOddWords(t *testing.T) {
	e := testStore(t, tableOf(t)).engine
	record := func(n int64) swap.Record { return swap.Record{Head: "9/1h", State: []int64{n}} }
	change := func(name string, old swap.Cell, next swap.Record) swap.Change {
		return swap.Change{Key: swap.Key{Name: name}, Old: old, Next: next, Life: time.Hour}
	}
	try := func(want bool, changes ...swap.Change) {
		t.Helper()
		if swapped, err := e.Swap(t.Context(), changes); err != nil || swapped != want {
			t.Errorf("swapped is %v, %v", swapped, err)
		}
	}
	try(true, change("a", swap.Cell{}, record(1)), change("b", swap.Cell{}, record(2)))
	for _, next := range []swap.Record{record(3), {}} {
		if _, err := e.pool.Exec(t.Context(), e.table.in(`UPDATE TABLE SET words = '{{1},{2}}' WHERE name = 'b'`)); err != nil {
			t.Fatal(err)
		}
		odd, err := e.loadOne(t.Context(), "b")
		if err != nil || odd.Foreign == nil || !odd.Empty() {
			t.Fatal(odd, err)
		}
		try(false, change("a", swap.Cell{Record: record(9)}, record(1)), change("b", odd, next))
		try(true, change("a", swap.Cell{Record: record(1)}, record(1)), change("b", odd, record(4)))
		try(false, change("b", odd, next))
		if _, err := e.pool.Exec(t.Context(), e.table.in(`UPDATE TABLE SET words = '{{1},{2}}' WHERE name = 'b'`)); err != nil {
			t.Fatal(err)
		}
		try(true, change("b", odd, next))
		cell, err := e.loadOne(t.Context(), "b")
		if err != nil || cell.Head != next.Head || !slices.Equal(cell.State, next.State) {
			t.Errorf("%+v, %v, want %+v", cell, err, next)
		}
	}
}

// A request that is denied writes nothing.
func TestDeniedJointsWriteNothing(t *testing.T) {
	s := testStore(t, tableOf(t))
	parts := []store.Part{partOf(t, s, "3/1h", "k"), partOf(t, s, "sliding-log 1/1h", "k"), partOf(t, s, "quota-reset 9/1h", "other"), partOf(t, s, "2/day", "k")}
	versions := func() (v []string) {
		sql := s.engine.table.in(`SELECT coalesce(array_agg(xmin::text || ' ' || xmax::text || ' ' || ctid::text ORDER BY name), '{}') FROM TABLE`)
		if err := s.engine.pool.QueryRow(t.Context(), sql).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	expensive := slices.Clone(parts)
	expensive[1].Cost = 2
	if passed(t, s, expensive) || len(versions()) != 0 {
		t.Errorf("what never passes has left %v", versions())
	}
	if !passed(t, s, parts) {
		t.Error("the first is denied")
	}
	before := versions()
	for range 5 {
		if passed(t, s, parts) || !slices.Equal(versions(), before) {
			t.Errorf("a denial makes %v of %v", versions(), before)
		}
	}
}

func TestJointsOfAStoreThatCloses(t *testing.T) {
	s := testStore(t, tableOf(t))
	var wg sync.WaitGroup
	var answers atomic.Int64
	for i := range 30 {
		parts := []store.Part{partOf(t, s, "1000/1h", "a"), partOf(t, s, "sliding-log 1000/1h", fmt.Sprint(i))}
		wg.Go(func() {
			if outcomes, err := s.TakeAll(t.Context(), parts, jointNoon, nil); err != nil && !errors.Is(err, swap.ErrClosed) || err == nil && outcomes[0].Granted != 1 {
				t.Errorf("%v, %v", outcomes, err)
			}
			answers.Add(1)
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if answers.Load() != 30 {
		t.Errorf("%d of 30 have an answer", answers.Load())
	}
}
