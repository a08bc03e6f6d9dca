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
	s, err := Open(t.Context(), SharedServer(t).URL(), Options{Table: table, TrustClientTime: true, Timeout: 30 * time.Second, SweepEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.joints.mostLost = 1 << 30
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

// Of one store no two flights have a name in common: whatever is asked for at one time, none loses a swap, and all is charged.
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
	if s.joints.close(); len(s.joints.busy) > 0 || len(s.joints.waiting) > 0 {
		t.Errorf("%v and %d joints are left", s.joints.busy, len(s.joints.waiting))
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

// swapAll replaces all or none, waits for nobody who has a lock, and for those who insert.
func TestSwapAll(t *testing.T) {
	e := testStore(t, tableOf(t)).engine
	record := func(n int64) swap.Record { return swap.Record{Head: fmt.Sprint(n, "/1h"), State: []int64{n}} }
	try := func(what string, want bool, changes ...change) {
		t.Helper()
		if swapped, err := e.swapAll(t.Context(), changes); err != nil || swapped != want {
			t.Errorf("%s: swapped is %v, %v", what, swapped, err)
		}
	}
	there := func(what string, want ...swap.Record) {
		t.Helper()
		cells, err := e.loadAll(t.Context(), []string{"a", "b", "c"})
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
	to := func(name string, old, next swap.Record) change { return change{name, old, next, time.Hour} }
	try("two new ones", true, to("a", none, record(1)), to("b", none, record(2)))
	there("two new ones", record(1), record(2), none)
	try("one new, one there", true, to("b", record(2), record(3)), to("c", none, record(4)))
	there("one new, one there", record(1), record(3), record(4))
	for what, other := range map[string]change{
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

// A joint that waits for another is dropped when its caller gives up, and has changed nothing; the rest goes on.
func TestJointsThatAreGivenUp(t *testing.T) {
	s := testStore(t, tableOf(t))
	a, b, c := partOf(t, s, "10/1h", "a"), partOf(t, s, "fixed-window 10/1h", "b"), partOf(t, s, "fixed-window 11/1h", "c")
	tx := begin(t)
	if _, err := tx.Exec(t.Context(), s.engine.table.in(`LOCK TABLE IN ACCESS EXCLUSIVE MODE`)); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int, busy ...string) {
		for ; ; time.Sleep(time.Millisecond) {
			s.joints.mu.Lock()
			there := len(s.joints.waiting) == n && len(s.joints.busy) > 0
			for _, key := range busy {
				there = there && s.joints.busy["weir:1:{"+key+"}:n%2010/1h"]
			}
			s.joints.mu.Unlock()
			if there {
				return
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { passed(t, s, []store.Part{a, b}) })
	waiting(0)
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		_, err := s.TakeAll(ctx, []store.Part{b, c}, jointNoon, nil)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrNothingDone) {
			t.Errorf("%v", err)
		}
	})
	waiting(1)
	wg.Go(func() { passed(t, s, []store.Part{c, partOf(t, s, "10/1h", "d")}) }) // behind one who waits
	waiting(2)
	wg.Go(func() { passed(t, s, []store.Part{partOf(t, s, "10/1h", "e"), partOf(t, s, "10/1h", "f")}) }) // it overtakes, and nobody with it
	waiting(2, "e")
	cancel()
	waiting(0, "d")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, p := range []struct {
		store.Part
		used int64
	}{{a, 1}, {b, 1}, {c, 1}} {
		if v, err := p.Binding.Do(t.Context(), p.Key, algorithm.Op{}, jointNoon); err != nil || p.Limit.Capacity()-v.Remaining != p.used {
			t.Errorf("%v: %d remain, %v, want %d used", p.Limit, v.Remaining, err, p.used)
		}
	}
	if _, err := s.TakeAll(ctx, []store.Part{a, b}, jointNoon, nil); !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrNothingDone) {
		t.Errorf("%v", err)
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
