package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

func part(t testing.TB, s store.Store, text, key string) store.Part {
	t.Helper()
	limit := algorithm.MustParseLimit(text)
	return store.Part{Store: s, Binding: of(t, s, text, text), Limit: limit, Name: text, Key: key, Cost: 1}
}

// Pitfall S5: 10 a second and 15 a minute. When the minute is empty, 100 denials leave the second as it is: full.
func TestS5DenialsChargeNothing(t *testing.T) {
	s := open(t, postgres.SharedServer(t).URL(), trusted(t))
	parts := []store.Part{part(t, s, "10/1s", "k"), part(t, s, "fixed-window 15/1m", "k")}
	now, passed := noon, 0
	for i := range 120 {
		outcomes, err := store.TakeAll(t.Context(), parts, now)
		if err != nil {
			t.Fatal(err)
		}
		if outcomes[0].Granted == 1 && outcomes[1].Granted == 1 {
			passed++
		} else if i >= 20 && (outcomes[0].Granted != 0 || outcomes[0].Remaining != 10 || outcomes[1].Granted != -1) {
			t.Errorf("request %d: %+v", i, outcomes)
		}
		if i == 9 || i == 19 {
			now += 2e9
		}
	}
	if passed != 15 {
		t.Errorf("%d passed, want 15", passed)
	}
}

// Pitfall S6: a limit twice is charged once, and two orders don't deadlock, however many ask.
func TestS6TwoOrders(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 {
		s := open(t, url, o)
		a, b := part(t, s, "100000/1h", "a"), part(t, s, "sliding-log 500/1h", "b")
		parts := [][]store.Part{{a, b, a}, {b, a, b}}[i]
		for range 100 {
			wg.Go(func() {
				for range 3 {
					outcomes, err := store.TakeAll(t.Context(), parts, noon)
					if err != nil {
						t.Error(err)
					} else if !slices.ContainsFunc(outcomes, func(o store.Outcome) bool { return o.Granted != 1 }) {
						passed.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	s := open(t, url, o)
	for _, p := range []store.Part{part(t, s, "100000/1h", "a"), part(t, s, "sliding-log 500/1h", "b")} {
		if v := take(t, p.Binding, p.Key, 0, noon); p.Limit.Capacity()-v.Remaining != passed.Load() {
			t.Errorf("%v: %d remain, when %d passed", p.Limit, v.Remaining, passed.Load())
		}
	}
	if passed.Load() < 400 || passed.Load() > 500 {
		t.Errorf("%d passed, of 600 and at most 500", passed.Load())
	}
}

// Reservations beside takes, from a limit that has changed, and settled.
func TestJointReservations(t *testing.T) {
	s := open(t, postgres.SharedServer(t).URL(), trusted(t))
	old := of(t, s, "rate", "fixed-window 20/1h")
	take(t, old, "k", 12, noon)
	rate := store.Part{Store: s, Binding: of(t, s, "rate", "10/1h"), Limit: algorithm.MustParseLimit("10/1h"), Name: "rate", Key: "k", Cost: 0, ID: 7, Life: 1e12}
	busy := part(t, s, "concurrent 2 lease=10s", "k")
	for i, want := range []int64{-1, 0} {
		rate.Cost = int64(1 - i)
		outcomes, err := store.TakeAll(t.Context(), []store.Part{busy, rate}, noon)
		if err != nil || outcomes[1].Granted != want || outcomes[0].Granted != int64(i) {
			t.Errorf("of cost %d: %+v, %v", rate.Cost, outcomes, err)
		}
	}
	if v := do(t, rate.Binding, "k", algorithm.Op{Kind: algorithm.Commit, ID: 7, Cost: 3}, noon); v.Granted != 3 {
		t.Errorf("%+v", v)
	}
	unnamed := part(t, s, "5/1h", "k")
	unnamed.Binding, unnamed.Name, unnamed.ID, unnamed.Life = bind(t, s, "5/1h"), "", 8, 1e12
	if _, err := store.TakeAll(t.Context(), []store.Part{busy, unnamed}, noon); !errors.Is(err, store.ErrUnnamed) {
		t.Error(err)
	}
	own := open(t, postgres.SharedServer(t).URL(), mine(t))
	if _, err := own.TakeAll(t.Context(), []store.Part{part(t, own, "5/1h", "k"), part(t, own, "6/1h", "k")}, noon, nil); !errors.Is(err, store.ErrClientTime) {
		t.Error(err)
	}
}

// A row that another client has locked, or that has been tampered with, holds up the requests that it is part of, and none of those that share
// another limit with them.
func TestJointsWithALockedRow(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	shared := func() store.Part { return part(t, s, "1000000/1h", "all") }
	for _, key := range []string{"locked", "odd"} {
		if _, err := store.TakeAll(t.Context(), []store.Part{shared(), part(t, s, "10/1h", key)}, store.OwnClock); err != nil {
			t.Fatal(err)
		}
	}
	run(t, url, `UPDATE `+o.Table+` SET words = '{1,2,3,4,5}' WHERE name LIKE '%{odd}%'`)
	unlock := lock(t, url, o.Table, "locked")
	ctx, cancel := context.WithCancel(t.Context())
	var held, free sync.WaitGroup
	held.Go(func() {
		if outcomes, err := store.TakeAll(ctx, []store.Part{shared(), part(t, s, "10/1h", "locked")}, store.OwnClock); err == nil {
			t.Errorf("%+v", outcomes)
		}
	})
	for i := range 50 {
		free.Go(func() {
			key := fmt.Sprint("free ", i)
			if i == 7 {
				key = "odd"
			}
			outcomes, err := store.TakeAll(t.Context(), []store.Part{shared(), part(t, s, "10/1h", key)}, store.OwnClock)
			switch {
			case key == "odd":
				if !errors.Is(err, store.ErrNothingDone) {
					t.Errorf("%+v, %v", outcomes, err)
				}
			case err != nil || outcomes[0].Granted != 1 || outcomes[1].Granted != 1:
				t.Errorf("%s: %+v, %v", key, outcomes, err)
			}
		})
	}
	free.Wait()
	cancel()
	held.Wait()
	unlock()
}
