package swap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

const account = "weir:1:{k}:login"

func bindNamed(t testing.TB, s *swap.Store, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Pitfall S18: what was used under one limit of a name is used under the next, and an admission alone writes another limit.
func TestS18LimitsChange(t *testing.T) {
	engine, _ := stopped()
	s := swap.New(engine, swap.Options{})
	low, high := bindNamed(t, s, "10/1m"), bindNamed(t, s, "fixed-window 12/1m")
	for i, step := range []struct {
		binding                  store.Binding
		cost, granted, remaining int64
		head                     string
	}{
		{low, 10, 10, 0, "10/1m"},
		{high, 0, 0, 2, "10/1m"},
		{high, 3, -1, 2, "10/1m"},
		{high, 3, -1, 2, "10/1m"},
		{high, 2, 2, 0, "fixed-window 12/1m"},
		{low, 1, -1, 0, "fixed-window 12/1m"},
	} {
		v, err := take(step.binding, "k", step.cost)
		if err != nil || v.Granted != step.granted || v.Remaining != step.remaining || engine.cells[account].Head != step.head {
			t.Errorf("step %d: %+v, %v, head %s; want %+v", i, v, err, engine.cells[account].Head, step)
		}
	}
	if engine.swaps != 2 || len(engine.cells) != 1 {
		t.Errorf("%d swaps, want 2; %v", engine.swaps, engine.cells)
	}
}

// A record lives for as long as a reservation can be settled.
func TestReservationsLive(t *testing.T) {
	engine, now := stopped()
	b := bindNamed(t, swap.New(engine, swap.Options{}), "10/1m")
	for i, step := range []struct {
		op                 algorithm.Op
		granted, remaining int64
		life               time.Duration
	}{
		{algorithm.Op{Kind: algorithm.Reserve, Cost: 5, ID: 7, Life: int64(time.Hour)}, 5, 5, time.Hour},
		{algorithm.Op{Kind: algorithm.Reserve, Cost: 5, ID: 7, Life: int64(time.Hour)}, 5, 5, time.Hour}, // by who had no answer
		{algorithm.Op{Kind: algorithm.Reserve, ID: 8, Life: 1}, 0, 5, time.Hour},                         // a microsecond
		{algorithm.Op{Kind: algorithm.Commit, Cost: 6, ID: 7}, 6, 4, 36 * time.Second},
		{algorithm.Op{Kind: algorithm.Commit, Cost: 6, ID: 7}, -1, 4, 36 * time.Second},
	} {
		v := do(t, b, step.op, store.OwnClock)
		if v.Granted != step.granted || v.Remaining != step.remaining || engine.lives[account] != step.life {
			t.Errorf("step %d: %+v, a life of %v; want %+v", i, v, engine.lives[account], step)
		}
	}
	do(t, b, algorithm.Op{Kind: algorithm.Reserve, ID: 9, Life: 1001}, store.OwnClock) // two microseconds
	*now++
	if v := do(t, b, algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 8}, store.OwnClock); v.Granted != -1 || v.Wait != algorithm.Never {
		t.Errorf("after its life: %+v", v)
	}
	if v := do(t, b, algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 9}, store.OwnClock); v.Granted != 1 {
		t.Errorf("within its life: %+v", v)
	}
}

// A record of a head alone is one: nothing is used of what was reserved.
func TestRecordWithoutState(t *testing.T) {
	engine, _ := stopped()
	b := bindNamed(t, swap.New(engine, swap.Options{}), "10/1m")
	do(t, b, algorithm.Op{Kind: algorithm.Reserve, ID: 7, Life: int64(time.Hour)}, store.OwnClock)
	if r := engine.cells[account]; r.Head == "" || len(r.State) != 0 {
		t.Errorf("%+v is kept of a reservation of nothing", r)
	}
	if v := do(t, b, algorithm.Op{Kind: algorithm.Commit, Cost: 4, ID: 7}, store.OwnClock); v.Granted != 4 || v.Remaining != 6 {
		t.Errorf("settled: %+v", v)
	}
}

func TestReservationsNeedAName(t *testing.T) {
	s := swap.New(newShelf(), swap.Options{})
	shared, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("10/1m"), TimeDebt: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []store.Binding{bind(t, s, "10/1m"), shared} {
		for _, kind := range []algorithm.Kind{algorithm.Reserve, algorithm.Commit} {
			if v, err := b.Do(context.Background(), "k", algorithm.Op{Kind: kind, Cost: 1, ID: 7, Life: 1e9}, store.OwnClock); !errors.Is(err, store.ErrUnnamed) {
				t.Errorf("%+v, %v", v, err)
			}
		}
	}
}

// What is no head is an error, as a foreign state is, until a reset.
func TestForeignHeads(t *testing.T) {
	for _, r := range []swap.Record{
		{Head: "hello", State: []int64{1}}, {State: []int64{start}}, {Head: "10/1m;hold=1", State: []int64{start}}, {Head: "10/1m", State: []int64{1, 2}},
		{Head: "fixed-window 10/1m;owed=-1@3", State: []int64{1, 2}}, {Head: ";", State: nil}, {Head: strings.Repeat("x", 300<<10)},
	} {
		engine, _ := stopped()
		s := swap.New(engine, swap.Options{SharedClock: true})
		engine.cells[account] = r
		b := bindNamed(t, s, "10/1m")
		for _, op := range []algorithm.Op{{}, {Cost: 1}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Reserve, ID: 7, Life: 1e9}, {Kind: algorithm.Commit, ID: 7}} {
			if v, err := b.Do(context.Background(), "k", op, store.OwnClock); !errors.Is(err, swap.ErrNothingDone) || len(err.Error()) > 1000 {
				t.Errorf("%.100v: %+v, %.1000v; want a short error that says that nothing was done", r, v, err)
			}
		}
		if engine.swaps != 0 {
			t.Errorf("%.100v: %d swaps", r, engine.swaps)
		}
		do(t, b, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
		if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 9 {
			t.Errorf("%.100v: after the reset %+v", r, v)
		}
	}
	engine, _ := stopped()
	engine.cells[name] = swap.Record{Head: "10/1m", State: []int64{start}}
	if v, err := take(bind(t, swap.New(engine, swap.Options{}), "10/1m"), "k", 1); !errors.Is(err, swap.ErrNothingDone) {
		t.Errorf("a head under a limiter that has no name: %+v, %v", v, err)
	}
}

func TestInspectOfAnotherLimit(t *testing.T) {
	engine, _ := stopped()
	s := swap.New(engine, swap.Options{})
	do(t, bindNamed(t, s, "10/1m"), algorithm.Op{Cost: 5}, store.OwnClock)
	was := engine.cells[account]
	state, at, err := bindNamed(t, s, "quota-reset 7/1m").(store.Inspector).Inspect(context.Background(), "k", store.OwnClock)
	if len(state) != 2 || state[1] != 5 || at != start || err != nil {
		t.Errorf("%v at %d, %v: want 5 used", state, at, err)
	}
	if !equal(engine.cells[account], was) || engine.swaps != 1 {
		t.Errorf("a look has changed it to %v, %d swaps", engine.cells[account], engine.swaps)
	}
}

// A Decider is told the head, decides where that is what is kept, and is not asked for reservations.
func TestDeciderOfAccounts(t *testing.T) {
	engine, _ := stopped()
	c := &clerk{shelf: engine}
	s := swap.New(c, swap.Options{})
	low, high := bindNamed(t, s, "10/1m"), bindNamed(t, s, "12/1m")
	do(t, low, algorithm.Op{Cost: 1}, store.OwnClock)
	if v := do(t, low, algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 8 || engine.loads != 0 || engine.cells[account].Head != "10/1m" {
		t.Errorf("%+v, %d loads, %v", v, engine.loads, engine.cells)
	}
	if v := do(t, high, algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 9 || engine.loads != 1 || c.asked != 3 {
		t.Errorf("another limit: %+v, %d loads, asked %d times", v, engine.loads, c.asked)
	}
	do(t, high, algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 7, Life: 1e9}, store.OwnClock)
	do(t, high, algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 7}, store.OwnClock)
	if c.asked != 3 {
		t.Errorf("asked %d times, also for reservations", c.asked)
	}
}

// Pitfall T4, of accounts: all states of one are healed.
func TestT4AccountIsHealed(t *testing.T) {
	engine, now := stopped()
	s := swap.New(engine, swap.Options{SharedClock: true})
	low, high := bindNamed(t, s, "10/1m"), bindNamed(t, s, "12/1m")
	do(t, low, algorithm.Op{Cost: 10}, store.OwnClock)
	do(t, high, algorithm.Op{Cost: 2}, store.OwnClock)
	*now -= 3600e6
	for _, b := range []store.Binding{low, high} {
		if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); v.Granted != -1 || v.Reset > time.Minute {
			t.Errorf("%+v, want a denial and a reset after a minute at most", v)
		}
	}
	if got := s.Counts().Healed; got != 1 {
		t.Errorf("%d were healed, want 1", got)
	}
}
