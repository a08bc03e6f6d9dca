package swap

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A table is an engine that keeps what it is told, and loses as many swaps as the test wants.
type table struct {
	cells map[string]Record
	lose  int
}

func (e *table) Load(_ context.Context, name string) (Cell, error) {
	return Cell{Record: e.cells[name], Now: 1_700_000_000_000_000}, nil
}

func (e *table) Swap(_ context.Context, name string, old Cell, next Record, life time.Duration) (bool, error) {
	switch {
	case !e.cells[name].equal(old.Record):
		return false, fmt.Errorf("the cell was changed in place to %v", old.Record)
	case next.equal(old.Record):
		return false, fmt.Errorf("%v was swapped for the same", next)
	case !next.Empty() && life <= 0:
		return false, fmt.Errorf("a record of no life: %v", next)
	case e.lose > 0:
		e.lose--
		return false, nil
	}
	e.cells[name] = Record{Head: next.Head, State: slices.Clone(next.State)}
	return true, nil
}

var texts = []string{
	"10/1s", "3/1s burst=5", "7/1s", "gcra 99999/1s", "leaky-bucket 4/1s burst=4", "leaky-queue 4/1s queue=3",
	"cooldown 3/1m", "min-interval 10/1s", "refill-bucket 5/10s burst=12", "fixed-window 5/10s", "quota-reset 5/10s",
	"sliding-log 4/10s", "sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "hybrid 6/6s",
	"exponential 10/10s", "exponential 10/10s strict",
}

func drawOp(t *rapid.T) algorithm.Op {
	return algorithm.Op{
		Kind: rapid.SampledFrom([]algorithm.Kind{
			algorithm.Take, algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Reset, algorithm.Cancel,
		}).Draw(t, "kind"),
		Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 0, 7, 1 << 40}).Draw(t, "cost"),
	}
}

// TestFlightsAreProgramsOneAfterAnother carries random calls in flights of random sizes, some of which lose swaps, and applies
// them to a state in turn.
func TestFlightsAreProgramsOneAfterAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		engine := &table{cells: map[string]Record{}}
		s := New(engine, Options{TrustClientTime: true})
		program, err := store.CompileMicroseconds(store.Spec{Limit: algorithm.MustParseLimit(rapid.SampledFrom(texts).Draw(t, "limit"))})
		if err != nil {
			t.Fatal(err)
		}
		var state []int64
		now := int64(1_700_000_000_000_000)
		for range rapid.IntRange(1, 30).Draw(t, "flights") {
			var calls []*call
			var want []algorithm.Verdict
			for range rapid.IntRange(1, 8).Draw(t, "calls") {
				now += rapid.SampledFrom([]int64{0, 1, 100, 1e3, 1e5, 3e5, 1e6, 7e6, 3600e6}).Draw(t, "gap")
				op := drawOp(t)
				op.End = now + rapid.SampledFrom([]int64{0, 1e5, 1e6, 1e7}).Draw(t, "end")
				c := &call{program: program, op: op, now: now, ended: t.Context().Err, end: time.Now().Add(time.Hour), done: make(chan struct{})}
				if _, err := s.queue.join("k", c); err != nil {
					t.Fatal(err)
				}
				calls = append(calls, c)
				var r algorithm.Result
				state, r = program.Apply(state, op, now)
				want = append(want, r.Verdict())
			}
			engine.lose = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lost swaps")
			s.serve("k")
			for i, c := range calls {
				if <-c.done; c.err != nil || c.verdict != want[i] || c.at != c.now {
					t.Fatalf("%s: %+v at %d: got %+v at %d, %v, want %+v", program.Limit(), c.op, c.now, c.verdict, c.at, c.err, want[i])
				}
			}
			if kept := engine.cells["k"]; !slices.Equal(kept.State, state) {
				t.Fatalf("%s: the state is %v, want %v", program.Limit(), kept, state)
			}
			if len(s.queue.lines) != 0 {
				t.Fatalf("idle, and %d lines are left", len(s.queue.lines))
			}
		}
	})
}

// TestFlightsOfAccounts carries random calls of a name, whose limits differ, and applies them to an account in turn.
func TestFlightsOfAccounts(t *testing.T) {
	all := append([]string{"10/day", "concurrent 3 lease=10s"}, texts...)
	rapid.Check(t, func(t *rapid.T) {
		engine := &table{cells: map[string]Record{}}
		s := New(engine, Options{TrustClientTime: true})
		var model algorithm.Account
		now := int64(1_700_000_000_000_000)
		for range rapid.IntRange(1, 20).Draw(t, "flights") {
			var calls []*call
			var want []algorithm.Verdict
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				program, err := store.CompileMicroseconds(store.Spec{Name: "name", Limit: algorithm.MustParseLimit(rapid.SampledFrom(all).Draw(t, "limit"))})
				if err != nil {
					t.Fatal(err)
				}
				now += rapid.SampledFrom([]int64{0, 1, 100, 1e3, 1e5, 3e5, 1e6, 7e6, 3600e6}).Draw(t, "gap")
				op := drawAccountOp(t, now)
				c := &call{program: program, accounts: true, op: op, now: now, ended: t.Context().Err, end: time.Now().Add(time.Hour), done: make(chan struct{})}
				if _, err := s.queue.join("k", c); err != nil {
					t.Fatal(err)
				}
				calls = append(calls, c)
				var r algorithm.Result
				model, r = model.Apply(program, op, now)
				want = append(want, r.Verdict())
			}
			engine.lose = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lost swaps")
			s.serve("k")
			for i, c := range calls {
				if <-c.done; c.err != nil || c.verdict != want[i] || c.at != c.now {
					t.Fatalf("%s: %+v at %d: got %+v at %d, %v, want %+v", c.program.Limit(), c.op, c.now, c.verdict, c.at, c.err, want[i])
				}
			}
			if kept := engine.cells["k"]; kept.Head != model.Head() || !slices.Equal(kept.State, model.State) {
				t.Fatalf("%v is kept, want %s %v", kept, model.Head(), model.State)
			}
		}
	})
}

func drawAccountOp(t *rapid.T, now int64) algorithm.Op {
	op := drawOp(t)
	op.Kind = rapid.SampledFrom([]algorithm.Kind{op.Kind, op.Kind, algorithm.Renew, algorithm.Reserve, algorithm.Commit}).Draw(t, "kind of accounts")
	op.End = now + rapid.SampledFrom([]int64{0, 1e5, 1e6, 1e7}).Draw(t, "end")
	op.ID = rapid.Int64Range(1, 4).Draw(t, "id")
	op.Life = rapid.SampledFrom([]int64{1, 1e6, 60e6, 7200e6}).Draw(t, "life")
	return op
}

func TestFlightsAreBounded(t *testing.T) {
	s := New(&table{cells: map[string]Record{}}, Options{})
	program, err := store.CompileMicroseconds(store.Spec{Limit: algorithm.MustParseLimit("10/1s")})
	if err != nil {
		t.Fatal(err)
	}
	for range mostAtOnce + 1 {
		c := &call{program: program, now: store.OwnClock, ended: t.Context().Err, end: time.Now().Add(time.Hour), done: make(chan struct{})}
		if _, err := s.queue.join("k", c); err != nil {
			t.Fatal(err)
		}
	}
	if first, second := len(s.queue.next("k")), len(s.queue.next("k")); first != mostAtOnce || second != 1 {
		t.Errorf("flights of %d and %d, want %d and 1", first, second, mostAtOnce)
	}
}

// A flight that takes of a key never seen and gives it all back has nothing to swap in, and does not try to for ever.
func TestNothingIsNotSwappedForNothing(t *testing.T) {
	s := New(&table{cells: map[string]Record{}}, Options{})
	program, err := store.CompileMicroseconds(store.Spec{Limit: algorithm.MustParseLimit("min-interval 50/1s")})
	if err != nil {
		t.Fatal(err)
	}
	f := &flight{store: s, name: "k"}
	for _, kind := range []algorithm.Kind{algorithm.Take, algorithm.Refund} {
		f.calls = append(f.calls, &call{program: program, op: algorithm.Op{Kind: kind, Cost: 1}, now: store.OwnClock, ended: t.Context().Err})
	}
	if swapped, err := f.try(t.Context()); !swapped || err != nil {
		t.Errorf("%v, %v", swapped, err)
	}
	if granted := f.calls[0].verdict.Granted; granted != 1 {
		t.Errorf("%d were granted", granted)
	}
}
