package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// Nothing was changed where no connection of the pool was free in time, and the caller is told so in time.
func TestCertainWithoutAConnection(t *testing.T) {
	e := testEngine(t, Options{})
	p := programs(t, "100/1h")[0]
	var held []*pgxpool.Conn
	for range e.pool.Config().MaxConns {
		conn, err := e.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, op := range []algorithm.Op{{Cost: 1}, {Kind: algorithm.Reset}} {
		if _, _, done, err := e.Decide(ctx, "k", "", p, op, store.OwnClock); done && err == nil || !errors.Is(err, swap.ErrNothingDone) || ctx.Err() != nil {
			t.Errorf("%+v: %v, %v, %v", op, done, err, ctx.Err())
		}
	}
	if _, err := e.Swap(ctx, "k", swap.Cell{}, swap.Record{State: []int64{1}}, time.Hour); !errors.Is(err, swap.ErrNothingDone) {
		t.Errorf("a swap: %v", err)
	}
	for _, conn := range held {
		conn.Release()
	}
}
