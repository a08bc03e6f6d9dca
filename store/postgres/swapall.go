package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store/swap"
)

// loadAll is load for names in their order.
const loadAll = `SELECT ` + serverTime + `, CASE WHEN ` + plain + ` THEN coalesce(head, '') ELSE '' END, CASE WHEN ` + plain + ` THEN words END,
	CASE WHEN ` + plain + ` THEN NULL ELSE words::text END
	FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, n)
	LEFT JOIN LATERAL (SELECT head, words FROM TABLE AS kept WHERE kept.name = wanted.name COLLATE "C" LIMIT 1) AS found ON true
	ORDER BY n`

// swapAll swaps records if all old ones are there, and none otherwise. It locks those that are there, but waits for none that another has locked:
// that is about to change. Where another has inserted one that was not there, it ends in an error, which undoes what it has done.
const swapAll = `
WITH wanted AS MATERIALIZED (
	SELECT name COLLATE "C" AS name, old_head, old_words::bigint[] AS old_words, head, words::bigint[] AS words, LIFE AS expires,
		old_head = '' AND old_words = '{}' AS fresh
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS w (name, old_head, old_words, head, words, life)
), locked AS MATERIALIZED (
	SELECT kept.name FROM wanted JOIN TABLE AS kept ON kept.name = wanted.name AND kept.head = wanted.old_head AND kept.words = wanted.old_words
	WHERE NOT fresh ORDER BY kept.name FOR UPDATE OF kept SKIP LOCKED
), go AS MATERIALIZED (
	SELECT (SELECT count(*) FROM locked) = (SELECT count(*) FROM wanted WHERE NOT fresh) AS all
), inserted AS (
	INSERT INTO TABLE AS kept (name, head, words, expires)
	SELECT name, head, words, expires FROM wanted WHERE fresh AND (SELECT go.all FROM go) ORDER BY name
	ON CONFLICT (name) DO UPDATE SET head = excluded.head, words = excluded.words, expires = excluded.expires
	WHERE kept.head = '' AND kept.words = '{}'
	RETURNING 1
), updated AS (
	UPDATE TABLE AS kept SET head = wanted.head, words = wanted.words, expires = wanted.expires FROM wanted
	WHERE NOT fresh AND (SELECT go.all FROM go) AND kept.name = wanted.name AND kept.head = wanted.old_head AND kept.words = wanted.old_words
	RETURNING 1
)
SELECT CASE WHEN NOT go.all THEN 0 WHEN done = (SELECT count(*) FROM wanted) THEN 1
	ELSE ('weir: another has begun one of ' || done || ', all are tried again')::bigint END
FROM go, (SELECT (SELECT count(*) FROM inserted) + (SELECT count(*) FROM updated) AS done) AS counts`

// begun is the condition of that error.
const begun = "22P02"

// loadAll returns what is kept under names, all of one instant, and read at one time.
func (e *engine) loadAll(ctx context.Context, names []string) (cells []swap.Cell, err error) {
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, e.loads, names)
		if err != nil {
			return err
		}
		cells, err = pgx.CollectRows(rows, scanCell)
		return err
	})
	now := int64(0)
	for i := range cells {
		now = max(now, cells[i].Now)
	}
	for i := range cells {
		cells[i].Now = now
	}
	return cells, err
}

// scanCell reads the answer of a load.
func scanCell(row pgx.CollectableRow) (cell swap.Cell, err error) {
	var odd *string
	if err = row.Scan(&cell.Now, &cell.Head, &cell.State, &odd); odd != nil {
		cell.Token, cell.Foreign = *odd, notWords(*odd)
	}
	return cell, err
}

// swapAll replaces all of the records, which are in the order of their names, or none.
func (e *engine) swapAll(ctx context.Context, changes []change) (swapped bool, err error) {
	var names, oldHeads, oldWords, heads, words []string
	var lives []int64
	for _, c := range changes {
		names, lives = append(names, c.name), append(lives, microseconds(c.life))
		oldHeads, oldWords = append(oldHeads, c.old.Head), append(oldWords, list(c.old.State))
		heads, words = append(heads, c.next.Head), append(words, list(c.next.State))
	}
	var done int64
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.swaps, names, oldHeads, oldWords, heads, words, lives).Scan(&done)
	})
	if isLost(err) || condition(err) == begun {
		return false, nil
	}
	return done > 0, undone(err)
}

// list is words as PostgreSQL reads them.
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
