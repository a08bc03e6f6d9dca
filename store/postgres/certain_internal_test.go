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

// endlessContext has a deadline and does not end by it: a wait for its end lasts for ever.
type endlessContext struct {
	context.Context
	deadline time.Time
}

func endless(t *testing.T) context.Context {
	t.Helper()
	return endlessContext{t.Context(), time.Now().Add(200 * time.Millisecond)}
}

func (c endlessContext) Deadline() (time.Time, bool) { return c.deadline, true }

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
	for _, op := range []algorithm.Op{{Cost: 1}, {Kind: algorithm.Reset}} {
		if _, _, done, err := e.decideOne(endless(t), "k", "", p, op, store.OwnClock); done && err == nil || !errors.Is(err, swap.ErrNothingDone) {
			t.Errorf("%+v: %v, %v", op, done, err)
		}
	}
	if _, err := e.swapOne(endless(t), "k", swap.Cell{}, swap.Record{State: []int64{1}}, time.Hour); !errors.Is(err, swap.ErrNothingDone) {
		t.Errorf("a swap: %v", err)
	}
	for _, conn := range held {
		conn.Release()
	}
}
