package postgres

import (
	"context"
	"fmt"
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
	mend, discard                       string // update and remove, of what is no list
	takes                               map[*steps]string

	migrating chan struct{} // holds one while the table is made
	swept     atomic.Int64
	failures  atomic.Int64 // of the sweeper
}

func newEngine(pool *pgxpool.Pool, t table, o Options) *engine {
	e := &engine{
		pool: pool, table: t, unlogged: o.Unlogged, makes: !o.NoMigrate, heals: !o.TrustClientTime,
		load: t.in(on("words", load)),
		insert: t.in(`INSERT INTO TABLE AS kept (name, words, expires) VALUES ($1, $2, ` + expires("$3") + `)
			ON CONFLICT (name) DO UPDATE SET words = excluded.words, expires = excluded.expires WHERE kept.words = '{}'`),
		update:    t.in(`UPDATE TABLE SET words = $2, expires = ` + expires("$3") + ` WHERE name = $1 AND words = $4`),
		mend:      t.in(`UPDATE TABLE SET words = $2, expires = ` + expires("$3") + ` WHERE name = $1 AND words::text = $4`),
		discard:   t.in(`DELETE FROM TABLE WHERE name = $1 AND words::text = $2`),
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

// load is the time, the words, and, if they are no list, how they read.
const load = `SELECT ` + serverTime + `, CASE WHEN ` + plain + ` THEN words END, CASE WHEN ` + plain + ` THEN NULL ELSE words::text END
	FROM (VALUES (1)) AS always LEFT JOIN TABLE ON name = $1`

// Load implements [swap.Engine]. The clock is read after the state was: whatever is in the state was written before.
func (e *engine) Load(ctx context.Context, name string) (cell swap.Cell, err error) {
	var odd *string
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.load, name).Scan(&cell.Now, &cell.State, &odd)
	})
	if odd != nil {
		cell.Token = *odd
		cell.Foreign = fmt.Errorf("postgres: words are %.100q; accepted: a list of whole numbers; they stay until they are reset", *odd)
	}
	return cell, err
}

// Swap implements [swap.Engine]. It compares values: a state of the same words is the same state, whatever was between.
func (e *engine) Swap(ctx context.Context, name string, old swap.Cell, next swap.Record, life time.Duration) (swapped bool, err error) {
	statement, args := e.swap(name, old, next.State, life)
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

// swap returns the statement of a swap. An empty state may also be a row without words.
func (e *engine) swap(name string, old swap.Cell, state []int64, life time.Duration) (statement string, args []any) {
	us := microseconds(life)
	odd, isOdd := old.Token.(string)
	switch {
	case isOdd && len(state) == 0:
		return e.discard, []any{name, odd}
	case isOdd:
		return e.mend, []any{name, state, us, odd}
	case len(state) == 0:
		return e.remove, []any{name, old.State}
	case len(old.State) == 0:
		return e.insert, []any{name, state, us}
	}
	return e.update, []any{name, state, us, old.State}
}

// microseconds rounds up.
func microseconds(d time.Duration) int64 {
	us := int64(d) / 1000
	if int64(d)%1000 > 0 && us < math.MaxInt64/1000 {
		us++
	}
	return us
}
