package postgres

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store/swap"
)

// An engine is a table of states.
//
// Every statement is a transaction of its own, at READ COMMITTED: what it does to a row depends on that row alone, or on rows that it has
// locked, and PostgreSQL looks at a row again, as it then is, when it had to wait for it. At a higher level such a statement fails instead,
// has done nothing, and is counted as a swap that was lost.
type engine struct {
	pool     *pgxpool.Pool
	table    table
	unlogged bool
	makes    bool // the table, if it is missing
	heals    bool
	clock    func() time.Time // of this process; nothing is decided by it

	load, insert, update, remove, reset string
	mend, discard                       string // update and remove, of what is no list
	loads, swaps                        string // load and swap of several
	takes                               map[*steps]string

	migrating chan struct{} // holds one while the table is made
	grace     time.Duration // how much longer than they matter records are kept
	swept     atomic.Int64

	failures, conflicts, healed atomic.Int64 // of the sweeper and of joints
}

func newEngine(pool *pgxpool.Pool, t table, o Options) *engine {
	e := &engine{
		pool: pool, table: t, unlogged: o.Unlogged, makes: !o.NoMigrate, heals: !o.TrustClientTime, clock: time.Now,
		load: t.in(on("words", load)),
		insert: t.in(`INSERT INTO TABLE AS kept (name, head, words, expires) VALUES ($1, $2, $3, ` + expires("$4") + `)
			ON CONFLICT (name) DO UPDATE SET head = excluded.head, words = excluded.words, expires = excluded.expires
			WHERE kept.head = '' AND kept.words = '{}'`),
		update:    t.in(`UPDATE TABLE SET head = $2, words = $3, expires = ` + expires("$4") + ` WHERE name = $1 AND head = $5 AND words = $6`),
		mend:      t.in(`UPDATE TABLE SET head = $2, words = $3, expires = ` + expires("$4") + ` WHERE name = $1 AND words::text = $5`),
		discard:   t.in(`DELETE FROM TABLE WHERE name = $1 AND words::text = $2`),
		remove:    t.in(`DELETE FROM TABLE WHERE name = $1 AND head = $2 AND words = $3`),
		reset:     t.in(`WITH gone AS (DELETE FROM TABLE WHERE name = $1) SELECT coalesce($2::bigint, ` + serverTime + `)`),
		loads:     t.in(on("words", loadAll)),
		swaps:     t.in(strings.ReplaceAll(swapAll, "LIFE", expires("life"))),
		takes:     map[*steps]string{},
		migrating: make(chan struct{}, 1),
	}
	grace := "0"
	if o.TrustClientTime {
		e.grace, grace = 24*time.Hour, "1 day"
	}
	for _, s := range []*steps{&linearTicks, &linearParts, &fixedWindow, &quotaReset, &refillBucket, &slidingWindow, &calendar} {
		e.takes[s] = s.sql(t, e.heals, grace)
	}
	return e
}

// expires is the time in so many µs.
func expires(life string) string {
	return `clock_timestamp() + ` + life + `::bigint * interval '1 microsecond'`
}

// load is the time, the head, the words, and, if they are no list, how they read.
const load = `SELECT ` + serverTime + `, CASE WHEN ` + plain + ` THEN coalesce(head, '') ELSE '' END, CASE WHEN ` + plain + ` THEN words END,
	CASE WHEN ` + plain + ` THEN NULL ELSE words::text END
	FROM (VALUES (1)) AS always LEFT JOIN TABLE ON name = $1`

// Load implements [swap.Engine]. The clock is read after the state was: whatever is in the state was written before.
func (e *engine) Load(ctx context.Context, name string) (cell swap.Cell, err error) {
	var odd *string
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.load, name).Scan(&cell.Now, &cell.Head, &cell.State, &odd)
	})
	if odd != nil {
		cell.Token, cell.Foreign = *odd, notWords(*odd)
	}
	return cell, err
}

func notWords(odd string) error {
	return fmt.Errorf("postgres: words are %.100q; accepted: a list of whole numbers; they stay until they are reset", odd)
}

// Swap implements [swap.Engine]. It compares values: a record of the same head and words is the same, whatever was between.
func (e *engine) Swap(ctx context.Context, name string, old swap.Cell, next swap.Record, life time.Duration) (swapped bool, err error) {
	statement, args := e.swap(name, old, next, life)
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

// swap returns the statement of a swap. An empty record may also be a row without a head and words.
func (e *engine) swap(name string, old swap.Cell, next swap.Record, life time.Duration) (statement string, args []any) {
	us := microseconds(life)
	odd, isOdd := old.Token.(string)
	switch {
	case isOdd && next.Empty():
		return e.discard, []any{name, odd}
	case isOdd:
		return e.mend, []any{name, next.Head, words(next), us, odd}
	case next.Empty():
		return e.remove, []any{name, old.Head, words(old.Record)}
	case old.Empty():
		return e.insert, []any{name, next.Head, words(next), us}
	}
	return e.update, []any{name, next.Head, words(next), us, old.Head, words(old.Record)}
}

// words are a record's for a statement, in which nil would be NULL.
func words(r swap.Record) []int64 {
	if r.State == nil {
		return []int64{}
	}
	return r.State
}

// microseconds rounds up.
func microseconds(d time.Duration) int64 {
	us := int64(d) / 1000
	if int64(d)%1000 > 0 && us < math.MaxInt64/1000 {
		us++
	}
	return us
}
