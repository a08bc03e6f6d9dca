package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store/swap"
)

// An engine is a table of states.
//
// Every statement is a transaction of its own, at READ COMMITTED. A change of a row depends on that row
// alone, or on rows that the statement has locked, and PostgreSQL reads a row again after a wait for it.
// At a higher isolation level such a statement fails, without an effect, and counts as a lost swap.
type engine struct {
	pool     *pgxpool.Pool
	table    table
	unlogged bool
	makes    bool // makes the table if it is missing
	heals    bool
	clock    func() time.Time // of this process; it decides nothing

	load, loads, swaps, insert, update, remove, reset string
	takes                                             map[*steps]string

	migrating chan struct{} // holds one while the table is made

	swept, failures atomic.Int64 // of the sweeper
}

func newEngine(pool *pgxpool.Pool, t table, o Options) *engine {
	in := func(statement, life string) string { return t.in(strings.ReplaceAll(statement, "LIFE", expires(life))) }
	e := &engine{
		pool: pool, table: t, unlogged: o.Unlogged, makes: !o.NoMigrate, heals: !o.TrustClientTime, clock: time.Now,
		load: in(on("words", loadOne), ""), loads: in(on("words", loadAll), ""), swaps: in(swapAll, "life"),
		insert: in(insert, "$4"), update: in(update, "$4"), remove: in(remove, ""), reset: in(reset, ""),
		takes:     map[*steps]string{},
		migrating: make(chan struct{}, 1),
	}
	grace := "0"
	if o.TrustClientTime {
		grace = "1 day"
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

// Load implements [swap.Engine].
func (e *engine) Load(ctx context.Context, keys []swap.Key) (cells []swap.Cell, err error) {
	statement, names := e.load, any(keys[0].Name)
	if len(keys) > 1 {
		statement, names = e.loads, namesOf(keys)
	}
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, statement, names)
		if err != nil {
			return err
		}
		cells, err = pgx.CollectRows(rows, scanCell)
		return err
	})
	if err != nil {
		return nil, undone(unsent{err})
	}
	now := int64(0)
	for i := range cells {
		now = max(now, cells[i].Now)
	}
	for i := range cells {
		cells[i].Now = now
	}
	return cells, nil
}

func namesOf(keys []swap.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// odd is the text of a row whose words are no list: the token of its cell.
type odd struct{ head, words string }

func scanCell(row pgx.CollectableRow) (cell swap.Cell, err error) {
	var text *string
	if err = row.Scan(&cell.Now, &cell.Head, &cell.State, &text); text != nil {
		cell.Token, cell.Head = odd{cell.Head, *text}, ""
		cell.Foreign = fmt.Errorf("words are %.100q; accepted: a list of whole numbers", *text)
	}
	return cell, err
}

// Swap implements [swap.Engine]. It compares values: a record of the same head and words is the same,
// even if it was replaced in between. For a single record there are shorter statements.
func (e *engine) Swap(ctx context.Context, changes []swap.Change) (swapped bool, err error) {
	if _, isOdd := changes[0].Old.Token.(odd); len(changes) > 1 || isOdd {
		return e.swapAll(ctx, changes)
	}
	c := changes[0]
	statement, args := e.update, []any{c.Name, c.Next.Head, words(c.Next), microseconds(c.Life), c.Old.Head, words(c.Old.Record)}
	switch {
	case c.Next.Empty():
		statement, args = e.remove, []any{c.Name, c.Old.Head, words(c.Old.Record)}
	case c.Old.Empty(): // or a row without a head and words
		statement, args = e.insert, args[:4]
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

func (e *engine) swapAll(ctx context.Context, changes []swap.Change) (swapped bool, err error) {
	var names, oldHeads, oldWords, heads, words []string
	var lives []int64
	for _, c := range changes {
		old, isOdd := c.Old.Token.(odd)
		if !isOdd {
			old = odd{c.Old.Head, list(c.Old.State)}
		}
		names, oldHeads, oldWords = append(names, c.Name), append(oldHeads, old.head), append(oldWords, old.words)
		heads, words, lives = append(heads, c.Next.Head), append(words, list(c.Next.State)), append(lives, microseconds(c.Life))
	}
	var done int64
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.swaps, names, oldHeads, oldWords, heads, words, lives).Scan(&done)
	})
	if isLost(err) || condition(err) == another {
		return false, nil
	}
	return done > 0, undone(err)
}

// list returns the text of words as PostgreSQL writes and reads them.
func list(words []int64) string {
	text := []byte{'{'}
	for i, w := range words {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, w, 10)
	}
	return string(append(text, '}'))
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
