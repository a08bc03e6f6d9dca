package postgres

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store/swap"
)

// An engine is a table of states.
//
// Every statement is a transaction of its own, at READ COMMITTED: what it does to a row depends on that row alone, and PostgreSQL
// looks at the row again, as it then is, when it had to wait for it. At a higher level such a statement fails instead,
// has done nothing, and is counted as a swap that was lost.
type engine struct {
	pool     *pgxpool.Pool
	table    table
	unlogged bool
	makes    bool // the table, if it is missing
	heals    bool

	load, insert, update, remove, reset string
	takes                               map[*steps]string

	migrating chan struct{} // holds one while the table is made
	swept     atomic.Int64
	failures  atomic.Int64 // of the sweeper
}

func newEngine(pool *pgxpool.Pool, t table, o Options) *engine {
	e := &engine{
		pool: pool, table: t, unlogged: o.Unlogged, makes: !o.NoMigrate, heals: !o.TrustClientTime,
		load:      t.in(`SELECT ` + serverTime + `, (SELECT words FROM TABLE WHERE name = $1)`),
		insert:    t.in(`INSERT INTO TABLE (name, words, expires) VALUES ($1, $2, ` + expires("$3") + `) ON CONFLICT (name) DO NOTHING`),
		update:    t.in(`UPDATE TABLE SET words = $2, expires = ` + expires("$3") + ` WHERE name = $1 AND words = $4`),
		remove:    t.in(`DELETE FROM TABLE WHERE name = $1 AND words = $2`),
		reset:     t.in(`WITH gone AS (DELETE FROM TABLE WHERE name = $1) SELECT coalesce($2::bigint, ` + serverTime + `)`),
		takes:     map[*steps]string{},
		migrating: make(chan struct{}, 1),
	}
	grace := "0"
	if o.TrustClientTime {
		grace = "1 day"
	}
	for _, s := range []*steps{&linearTicks, &linearParts, &fixedWindow, &quotaReset, &refillBucket, &slidingWindow} {
		e.takes[s] = s.sql(t, e.heals, grace)
	}
	return e
}

// expires is the time in so many µs.
func expires(life string) string {
	return `clock_timestamp() + ` + life + `::bigint * interval '1 microsecond'`
}

// Load implements [swap.Engine]. The clock is read after the state was: whatever is in the state was written before.
func (e *engine) Load(ctx context.Context, name string) (cell swap.Cell, err error) {
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.load, name).Scan(&cell.Now, &cell.State)
	})
	return cell, err
}

// Swap implements [swap.Engine]. It compares values: a state of the same words is the same state, whatever was between.
func (e *engine) Swap(ctx context.Context, name string, old swap.Cell, state []int64, life time.Duration) (swapped bool, err error) {
	statement, args := e.update, []any{name, state, microseconds(life), old.State}
	switch {
	case len(state) == 0:
		statement, args = e.remove, []any{name, old.State}
	case len(old.State) == 0:
		statement, args = e.insert, args[:3]
	}
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		tag, err := conn.Exec(ctx, statement, args...)
		swapped = tag.RowsAffected() > 0
		return err
	})
	if isLost(err) {
		return false, nil
	}
	return swapped, undone(err)
}

// microseconds rounds up.
func microseconds(d time.Duration) int64 {
	us := int64(d) / 1000
	if int64(d)%1000 > 0 && us < math.MaxInt64/1000 {
		us++
	}
	return us
}
