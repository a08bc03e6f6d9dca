package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// A named is a limit of a name, by which others go too.
type named struct {
	text    string
	binding store.Binding
	program *algorithm.Program
}

func bindNamed(t interface{ Fatal(...any) }, s *memory.Store, name, text string) named {
	limit := algorithm.MustParseLimit(text)
	b, err := s.Bind(store.Spec{Name: name, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	p, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	return named{text, b, p}
}

func (n named) part(s *memory.Store, name, key string, cost int64) store.Part {
	return store.Part{Store: s, Binding: n.binding, Limit: algorithm.MustParseLimit(n.text), Name: name, Key: key, Cost: cost}
}

// accounts is the slow and obvious store: an account for each key, and none is ever forgotten.
type accounts map[string]algorithm.Account

func (a accounts) apply(p *algorithm.Program, key string, op algorithm.Op, now int64) algorithm.Verdict {
	next, r := copied(a[key]).Apply(p, op, now)
	a[key] = next
	return r.Verdict()
}

// passes tells what an operation would do.
func (a accounts) passes(p *algorithm.Program, key string, op algorithm.Op, now int64) bool {
	_, r := copied(a[key]).Apply(p, op, now)
	return r.Allowed
}

func copied(a algorithm.Account) algorithm.Account {
	a.State = append([]int64(nil), a.State...)
	return a
}

var gaps = []int64{0, 1, 100, 1e6, 1e8, 3e8, 1e9, 7e9, 3600e9}

func drawOp(t *rapid.T, now int64) algorithm.Op {
	return algorithm.Op{
		Kind: rapid.SampledFrom([]algorithm.Kind{
			algorithm.Take, algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Reset, algorithm.Cancel,
			algorithm.Renew, algorithm.Reserve, algorithm.Reserve, algorithm.Commit,
		}).Draw(t, "kind"),
		Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 0, 7, 1 << 40}).Draw(t, "cost"),
		End:  now + rapid.SampledFrom([]int64{0, 1e8, 1e9, 1e10, 6e10}).Draw(t, "end"),
		ID:   rapid.Int64Range(1, 4).Draw(t, "id"),
		Life: rapid.SampledFrom([]int64{1000, 1e9, 60e9, 7200e9}).Draw(t, "life"),
	}
}

// TestNamesAreAccounts runs random operations on few keys under limits that change, alone and several together, and on a map of accounts.
func TestNamesAreAccounts(t *testing.T) {
	texts := append([]string{"10/day", "concurrent 4 lease=10s", "concurrent 2 lease=1s"}, limits...)
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{})
		model := accounts{}
		now := int64(1_700_000_000_000_000_000)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.SampledFrom(gaps).Draw(t, "gap")
			if rapid.IntRange(0, 3).Draw(t, "together") == 0 {
				together(t, s, model, texts, now)
				continue
			}
			n := bindNamed(t, s, "name", rapid.SampledFrom(texts).Draw(t, "limit"))
			key := fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "key"))
			op := drawOp(t, now)
			got, err := n.binding.Do(context.Background(), key, op, now)
			if want := model.apply(n.program, "name "+key, op, now); err != nil || got != want {
				t.Fatalf("%s: %+v at %d on %s: got %+v, %v; want %+v", n.text, op, now, key, got, err, want)
			}
		}
	})
}

// together takes under several names at once, and compares.
func together(t *rapid.T, s *memory.Store, model accounts, texts []string, now int64) {
	type asked struct {
		named
		key string
		op  algorithm.Op
	}
	var all []asked
	var parts []store.Part
	pass := true
	for i := range rapid.IntRange(1, 6).Draw(t, "parts") {
		name, key := []string{"name", "other"}[i/3], fmt.Sprint(i%3)
		n := bindNamed(t, s, name, rapid.SampledFrom(texts).Draw(t, "limit"))
		p := n.part(s, name, key, rapid.SampledFrom([]int64{1, 1, 2, 0, 5}).Draw(t, "cost"))
		a := asked{n, name + " " + key, algorithm.Op{Cost: p.Cost}}
		if rapid.IntRange(0, 3).Draw(t, "reserve") == 0 {
			p.ID, p.Life = rapid.Int64Range(1, 4).Draw(t, "id"), 60e9
			a.op = algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: p.Life}
		}
		all, parts = append(all, a), append(parts, p)
		pass = pass && model.passes(n.program, a.key, a.op, now)
	}
	outcomes, err := s.TakeAll(context.Background(), parts, now, nil)
	if err != nil || len(outcomes) != len(parts) {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	for i, a := range all {
		op := a.op
		if !pass && model.passes(a.program, a.key, op, now) {
			op = algorithm.Op{}
		}
		want := store.Outcome{Verdict: model.apply(a.program, a.key, op, now), At: now}
		if outcomes[i] != want {
			t.Fatalf("part %d, %s: %+v at %d, all pass: %v: got %+v, want %+v", i, a.text, a.op, now, pass, outcomes[i], want)
		}
	}
}

// Pitfall S18: while limits of one name change under those who ask, no more is admitted in all than the largest of them says.
func TestPitfallS18LimitsChangeUnderConcurrency(t *testing.T) {
	texts := []string{"40/720h", "fixed-window 60/720h", "sliding-log 30/720h", "quota-reset 50/720h", "concurrent 20 lease=720h"}
	for round := range 20 {
		s := memory.New(memory.Options{})
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 / slowdown * 10 {
					n := bindNamed(t, s, "name", texts[(i+g)%len(texts)])
					admitted.Add(max(0, do(t, n.binding, "k", algorithm.Op{Cost: int64(1 + i%2)}, store.OwnClock).Granted))
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 60 {
			t.Fatalf("round %d: %d were admitted, want the 60 of the largest limit", round, admitted.Load())
		}
		if n := s.Stats().Keys; n != 1 {
			t.Fatalf("%d keys, want one account", n)
		}
	}
}

// TestReservationsNeedAName: they are kept in accounts.
func TestReservationsNeedAName(t *testing.T) {
	s := memory.New(memory.Options{})
	for _, spec := range []store.Spec{
		{Limit: algorithm.MustParseLimit("10/1m")}, {Limit: algorithm.MustParseLimit("fixed-window 10/1m")},
		{Limit: algorithm.MustParseLimit("10/1m"), Name: "debt", TimeDebt: true},
	} {
		b, err := s.Bind(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []algorithm.Op{{Kind: algorithm.Reserve, Cost: 1, ID: 7, Life: second}, {Kind: algorithm.Commit, ID: 7}} {
			if v, err := b.Do(context.Background(), "k", op, store.OwnClock); !errors.Is(err, store.ErrUnnamed) {
				t.Errorf("%+v: %+v, %v", spec, v, err)
			}
		}
		parts := []store.Part{{Store: s, Binding: b, Limit: spec.Limit, Name: spec.Name, Key: "k", Cost: 1, ID: 7, Life: second}}
		if out, err := s.TakeAll(context.Background(), parts, store.OwnClock, nil); !errors.Is(err, store.ErrUnnamed) {
			t.Errorf("%+v: %+v, %v", spec, out, err)
		}
		if v := do(t, b, "k", algorithm.Op{}, store.OwnClock); v.Remaining != 10 {
			t.Errorf("%+v: %+v", spec, v)
		}
	}
}

// TestReservedKeysAreKept for as long as they can be settled, and then forgotten.
func TestReservedKeysAreKept(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 1})
	b := bindNamed(t, s, "name", "10/1s").binding
	do(t, b, "a", algorithm.Op{Kind: algorithm.Reserve, Cost: 5, ID: 7, Life: 3600 * second}, 0)
	if v := do(t, b, "b", algorithm.Op{Cost: 1}, 1800*second); v.Granted != -1 || v.Wait != 100*time.Millisecond {
		t.Errorf("another key, in a full store: %+v; want a denial for as long as the limit takes for a unit", v)
	}
	if v := do(t, b, "a", algorithm.Op{Kind: algorithm.Commit, Cost: 7, ID: 7}, 1800*second); v.Granted != 7 || v.Remaining != 8 {
		t.Errorf("settled: %+v", v)
	}
	if v := do(t, b, "b", algorithm.Op{Cost: 1}, 1900*second); v.Granted != 1 {
		t.Errorf("another key, when all is settled: %+v", v)
	}
}

// TestOverflowShareOfANameIsOneAccount: the new keys of a full store share a budget whatever the limit, and what is reserved in it can be settled.
func TestOverflowShareOfANameIsOneAccount(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 1, Overflow: memory.Share})
	first, other := bindNamed(t, s, "name", "10/1h").binding, bindNamed(t, s, "name", "fixed-window 12/1h").binding
	take1(t, first, "known", 0)
	if v := do(t, first, "a", algorithm.Op{Cost: 4}, 0); v.Granted != 4 || v.Remaining != 6 {
		t.Errorf("a new key: %+v", v)
	}
	if v := do(t, other, "b", algorithm.Op{Cost: 5}, 0); v.Granted != 5 || v.Remaining != 3 {
		t.Errorf("another, under another limit: %+v", v)
	}
	if v := do(t, other, "c", algorithm.Op{Kind: algorithm.Reserve, Cost: 3, ID: 7, Life: second}, 0); v.Granted != 3 || v.Remaining != 0 {
		t.Errorf("reserved: %+v", v)
	}
	for _, want := range []int64{1, -1} {
		if v := do(t, other, "c", algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 7}, 0); v.Granted != want {
			t.Errorf("settled: %+v, want %d", v, want)
		}
	}
	if v := do(t, other, "d", algorithm.Op{Cost: 3}, 0); v.Granted != -1 {
		t.Errorf("more than is left: %+v", v)
	}
	if v := do(t, other, "d", algorithm.Op{Cost: 2}, 0); v.Granted != 2 {
		t.Errorf("what was not used of the reservation: %+v", v)
	}
	do(t, first, "known", algorithm.Op{Kind: algorithm.Reset}, 0)
	if v := do(t, other, "a", algorithm.Op{Cost: 1}, 0); v.Granted != -1 {
		t.Errorf("a key that is added starts with the debt: %+v", v)
	}
}

// TestLateCommitsInAFullStore: those of a new key settle a reservation in the shared budget, or are
// charged to the budget; without a budget they are denied.
func TestLateCommitsInAFullStore(t *testing.T) {
	late := algorithm.Op{Kind: algorithm.Commit, Late: true, Cost: 2, ID: 7}
	s := memory.New(memory.Options{MaxKeys: 1, Overflow: memory.Share})
	b := bindNamed(t, s, "name", "fixed-window 12/1h").binding
	take1(t, b, "known", 0)
	do(t, b, "c", algorithm.Op{Kind: algorithm.Reserve, Cost: 3, ID: 7, Life: second}, 0)
	for _, left := range []int64{10, 8} { // of the reservation, and without one
		if v := do(t, b, "c", late, 0); v.Granted != 2 || v.Remaining != left {
			t.Errorf("%+v, want 2, and %d left", v, left)
		}
	}
	b = bindNamed(t, memory.New(memory.Options{MaxKeys: 1}), "name", "fixed-window 12/1h").binding
	take1(t, b, "known", 0)
	if v := do(t, b, "c", late, 0); v.Granted != -1 {
		t.Errorf("without a shared budget: %+v", v)
	}
}

// TestInspectShowsWhatTheLimitFinds of an account that is another's, and changes nothing.
func TestInspectShowsWhatTheLimitFinds(t *testing.T) {
	s := memory.New(memory.Options{})
	first, other := bindNamed(t, s, "name", "10/1h"), bindNamed(t, s, "name", "fixed-window 12/1h")
	do(t, first.binding, "k", algorithm.Op{Cost: 4}, 3600*second)
	for range 2 {
		state, at, err := other.binding.(store.Inspector).Inspect(context.Background(), "k", 3600*second)
		if len(state) != 2 || state[0] != 1 || state[1] != 4 || at != 3600*second || err != nil {
			t.Errorf("%v at %d, %v; want 4 used in the second hour", state, at, err)
		}
	}
	if state, _, err := first.binding.(store.Inspector).Inspect(context.Background(), "k", 3600*second); len(state) != 1 || err != nil {
		t.Errorf("the limit's own: %v, %v", state, err)
	}
}

// TestALookForgetsNothing: a key is kept for as long as its account matters, whatever the limit of who looks.
func TestALookForgetsNothing(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 1})
	hour, moment := bindNamed(t, s, "name", "10/1h").binding, bindNamed(t, s, "name", "1/1s").binding
	do(t, hour, "a", algorithm.Op{Cost: 10}, 0)
	do(t, moment, "a", algorithm.Op{}, 0)
	if v := do(t, hour, "b", algorithm.Op{Cost: 1}, 60*second); v.Granted != -1 {
		t.Errorf("another key in a full store: %+v", v)
	}
	if v := do(t, hour, "a", algorithm.Op{}, 360*second); v.Remaining != 1 {
		t.Errorf("%+v: want 9 of 10 used", v)
	}
}
