package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// Pitfall S1: connections are cut during the first hits of keys. Every row that is left has a life, as all do that the table accepts.
func TestS1ConnectionsAreCut(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url+"&application_name=cut", o)
	var stop atomic.Bool
	var decided, failed atomic.Int64
	var wg sync.WaitGroup
	for i, text := range []string{"100/1000h", "fixed-window 100/1000h", "sliding-log 100/1000h", "concurrent 100 lease=1000h"} {
		b, named := bind(t, s, text), of(t, s, "n", text)
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				b := []store.Binding{b, named}[n%2]
				if _, err := b.Do(context.Background(), fmt.Sprint(i, ".", n), algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
					failed.Add(1)
				} else {
					decided.Add(1)
				}
			}
		})
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for decided.Load() <= 200 || failed.Load() <= 20 {
		before := decided.Load()
		waitFor(func() bool { return decided.Load() >= before+5 }) // a cut every few milliseconds would leave no time to decide
		if _, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut'`); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	// A statement whose connection was cut may still add its row between the two queries.
	others := `SELECT count(*) FROM ` + o.Table + ` WHERE expires NOT BETWEEN now() AND now() + interval '1000 h 1 s'`
	if n, all := query[int64](t, url, others), query[int64](t, url, `SELECT count(*) FROM `+o.Table); n != 0 || all < decided.Load() {
		t.Errorf("%d of %d rows have no life, after %d decisions", n, all, decided.Load())
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO `+o.Table+` (name, words) VALUES ('x', '{}')`); err == nil {
		t.Error("the table takes a row without a life")
	}
}

// Pitfall S7: of every algorithm, after takes of 1 and 5, refunds, denials, resets, reservations and joint decisions, each row expires, at most
// two windows and a second from now.
func TestS7CensusOfLives(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	const window = 10 * time.Minute
	for n, text := range []string{
		"20/10m", "gcra 20/10m", "leaky-bucket 20/10m", "leaky-queue 20/10m queue=19", "cooldown 20/10m", "min-interval 1/10m", "refill-bucket 20/10m",
		"fixed-window 20/10m", "quota-reset 20/10m", "sliding-log 20/10m", "sliding-window 20/10m", "sliding-buckets 20/10m cells=20", "hybrid 20/10m",
		"exponential 20/10m", "exponential 20/10m strict", "concurrent 20 lease=10m",
	} {
		named := of(t, s, fmt.Sprint("n", n), text)
		for i, b := range []store.Binding{bind(t, s, text), named} {
			for j, op := range []algorithm.Op{
				{Cost: 1}, {Cost: 5}, {Kind: algorithm.Refund, Cost: 2}, {Kind: algorithm.TakeUpTo, Cost: 100}, {Cost: 5}, {Kind: algorithm.Reset},
			} {
				key := fmt.Sprint("k", n)
				do(t, b, key, algorithm.Op{Cost: 1}, store.OwnClock)
				do(t, b, key, op, store.OwnClock)
				do(t, b, fmt.Sprint(key, ".", j), op, store.OwnClock)
			}
			if i == 1 {
				do(t, b, "held", algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: int64(window)}, store.OwnClock)
			}
		}
		limit := algorithm.MustParseLimit(text)
		parts := []store.Part{
			{Store: s, Binding: named, Limit: limit, Name: fmt.Sprint("n", n), Key: "joint", Cost: 1},
			{Store: s, Binding: named, Limit: limit, Name: fmt.Sprint("n", n), Key: "other", Cost: 1},
		}
		if _, err := store.TakeAll(t.Context(), parts, store.OwnClock); err != nil {
			t.Error(err)
		}
	}
	census := `SELECT count(*) FROM ` + o.Table + ` WHERE name <> 'sweep'`
	all := query[int](t, url, census)
	// Under exponential 20 units fade for three and a half windows.
	within := census + ` AND expires BETWEEN now() AND now() + interval '20 min 1 s' * CASE WHEN name || head LIKE '%exponential%' THEN 2 ELSE 1 END`
	if n := query[int](t, url, within); n != all || all < 16*8 {
		t.Errorf("%d of %d rows expire within two windows", n, all)
	}
}
