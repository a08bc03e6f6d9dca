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

func (e *table) Load(_ context.Context, keys []Key) ([]Cell, error) {
	cells := make([]Cell, len(keys))
	for i, k := range keys {
		cells[i] = Cell{Record: e.cells[k.Name], Now: 1_700_000_000_000_000}
	}
	return cells, nil
}

func (e *table) Swap(_ context.Context, changes []Change) (bool, error) {
	for i, c := range changes {
		switch {
		case i > 0 && changes[i-1].Name >= c.Name:
			return false, fmt.Errorf("%q follows %q", c.Name, changes[i-1].Name)
		case !e.cells[c.Name].equal(c.Old.Record):
			return false, fmt.Errorf("the cell was changed in place to %v", c.Old.Record)
		case c.Next.equal(c.Old.Record):
			return false, fmt.Errorf("%v was swapped for the same", c.Next)
		case !c.Next.Empty() && c.Life <= 0:
			return false, fmt.Errorf("a record of no life: %v", c.Next)
		}
	}
	if e.lose > 0 {
		e.lose--
		return false, nil
	}
	for _, c := range changes {
		e.cells[c.Name] = Record{Head: c.Next.Head, State: slices.Clone(c.Next.State)}
	}
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

// limitOf returns a limit as Bind makes it.
func limitOf(t *rapid.T, spec store.Spec) *Limit {
	p, err := store.CompileMicroseconds(spec)
	if err != nil {
		t.Fatal(err)
	}
	l := &Limit{Program: p, Accounts: spec.Accounts()}
	if l.Accounts {
		l.Head = p.Head()
	}
	return l
}

// apply carries out a step on an account of a model.
func apply(a algorithm.Account, s *Step) (algorithm.Account, algorithm.Verdict) {
	a.State = slices.Clone(a.State)
	if s.Limit.Accounts {
		a, r := a.Apply(s.Limit.Program, s.Op, s.Now)
		return a, r.Verdict()
	}
	var r algorithm.Result
	a.State, r = s.Limit.Program.Apply(a.State, s.Op, s.Now)
	return a, r.Verdict()
}

func callOf(t testing.TB, r *Request) *call {
	c := newCall(r)
	c.canceled, c.end = t.Context().Err, time.Now().Add(time.Hour)
	return c
}

// TestRoundsAreStepsOneAfterAnother sends random steps on one name in rounds of random sizes, some of which
// lose swaps, and applies them to a model in turn.
func TestRoundsAreStepsOneAfterAnother(outer *testing.T) {
	all := append([]string{"10/day", "concurrent 3 lease=10s"}, texts...)
	rapid.Check(outer, func(t *rapid.T) {
		engine := &table{cells: map[string]Record{}}
		s := New(engine, Options{TrustClientTime: true})
		var model algorithm.Account
		named := rapid.Bool().Draw(t, "named")
		one := rapid.SampledFrom(texts).Draw(t, "limit")
		now := int64(1_700_000_000_000_000)
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			var calls []*call
			var want []algorithm.Verdict
			var first []*call
			for range rapid.IntRange(1, 8).Draw(t, "calls") {
				spec := store.Spec{Limit: algorithm.MustParseLimit(one)}
				if named {
					spec = store.Spec{Name: "name", Limit: algorithm.MustParseLimit(rapid.SampledFrom(all).Draw(t, "limit"))}
				}
				now += rapid.SampledFrom([]int64{0, 1, 100, 1e3, 1e5, 3e5, 1e6, 7e6, 3600e6}).Draw(t, "gap")
				op := drawOp(t)
				op.End = now + rapid.SampledFrom([]int64{0, 1e5, 1e6, 1e7}).Draw(t, "end")
				if named {
					op = drawAccountOp(t, now)
				}
				c := callOf(outer, &Request{Steps: []Step{{Key: Key{"k", limitOf(t, spec)}, Op: op, Now: now}}})
				round, err := s.queue.join(c)
				if err != nil || (round != nil) != (len(calls) == 0) {
					t.Fatal(round, err)
				}
				if calls = append(calls, c); round != nil {
					first = round
				}
				var v algorithm.Verdict
				model, v = apply(model, &c.Steps[0])
				want = append(want, v)
			}
			engine.lose = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lost swaps")
			s.serve(first)
			for i, c := range calls {
				step := c.Steps[0]
				if <-c.done; c.err != nil || step.Verdict != want[i] {
					t.Fatalf("%s: %+v: %v, want %+v", step.Limit.Program.Limit(), step, c.err, want[i])
				}
			}
			if kept := engine.cells["k"]; kept.Head != model.Head() || !slices.Equal(kept.State, model.State) {
				t.Fatalf("%+v is kept, want %s %v", kept, model.Head(), model.State)
			}
			if len(s.queue.busy) != 0 {
				t.Fatalf("idle, and %d names are busy", len(s.queue.busy))
			}
		}
	})
}

// TestModes carries out random requests of several steps on several names, and compares them with a
// model that charges all or none.
func TestModes(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		engine := &table{cells: map[string]Record{}}
		s := New(engine, Options{TrustClientTime: true})
		model := map[string]algorithm.Account{}
		now := int64(1_700_000_000_000_000)
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			now += rapid.SampledFrom([]int64{0, 1e3, 1e5, 1e6, 7e6}).Draw(t, "gap")
			q := &Request{Mode: rapid.SampledFrom([]Mode{Each, All, All, Look}).Draw(t, "mode")}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID[string]).Draw(t, "names") {
				op := algorithm.Op{Cost: rapid.SampledFrom([]int64{0, 1, 1, 2, 9}).Draw(t, "cost")}
				if rapid.Bool().Draw(t, "reserve") {
					op.Kind, op.ID, op.Life = algorithm.Reserve, rapid.Int64Range(1, 9).Draw(t, "id"), 1e6
				}
				l := limitOf(t, store.Spec{Name: "n", Limit: algorithm.MustParseLimit(rapid.SampledFrom(texts).Draw(t, "limit"))})
				q.Steps = append(q.Steps, Step{Key: Key{name, l}, Op: op, Now: now})
			}
			after, want, charge := make([]algorithm.Account, len(q.Steps)), make([]algorithm.Verdict, len(q.Steps)), q.Mode != Look
			for i := range q.Steps {
				after[i], want[i] = apply(model[q.Steps[i].Name], &q.Steps[i])
				charge = charge && (q.Mode == Each || want[i].Granted >= 0)
			}
			for i := range q.Steps {
				step := q.Steps[i]
				if charge || want[i].Granted < 0 {
					if !step.peeks() {
						model[step.Name] = after[i]
					}
					continue
				}
				step.Op = algorithm.Op{}
				_, want[i] = apply(model[step.Name], &step)
			}
			engine.lose = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lost swaps")
			if err := s.do(outer.Context(), q); err != nil {
				t.Fatal(err)
			}
			for i, step := range q.Steps {
				if step.Verdict != want[i] {
					t.Fatalf("mode %d, %s: %+v, want %+v", q.Mode, step.Limit.Program.Limit(), step, want[i])
				}
			}
			for name, a := range model {
				if kept := engine.cells[name]; kept.Head != a.Head() || !slices.Equal(kept.State, a.State) {
					t.Fatalf("mode %d: %+v is kept of %s, want %s %v", q.Mode, kept, name, a.Head(), a.State)
				}
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

// A round that takes of a key never seen and gives it all back has nothing to swap in, and does not
// try to for ever.
func TestNothingIsNotSwappedForNothing(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		s := New(&table{cells: map[string]Record{}}, Options{})
		l := limitOf(t, store.Spec{Limit: algorithm.MustParseLimit("min-interval 50/1s")})
		q := &Request{}
		for _, kind := range []algorithm.Kind{algorithm.Take, algorithm.Refund} {
			q.Steps = append(q.Steps, Step{Key: Key{"k", l}, Op: algorithm.Op{Kind: kind, Cost: 1}, Now: store.OwnClock})
		}
		if err := s.do(outer.Context(), q); err != nil || q.Steps[0].Verdict.Granted != 1 {
			t.Errorf("%v, %+v", err, q)
		}
	})
}
