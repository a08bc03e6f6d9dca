package postgres

// columns of a load: the time, the head, the words, and, if they are no list, their text. The clock is
// read after the record was: all that is in the record was written before.
const columns = serverTime + `, coalesce(head, ''), CASE WHEN ` + plain + ` THEN words END, CASE WHEN ` + plain + ` THEN NULL ELSE words::text END`

const loadOne = `SELECT ` + columns + ` FROM (VALUES (1)) AS always LEFT JOIN TABLE ON name = $1`

// loadAll is loadOne for several names, in their order.
const loadAll = `SELECT ` + columns + `
	FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, n)
	LEFT JOIN LATERAL (SELECT head, words FROM TABLE AS kept WHERE kept.name = wanted.name COLLATE "C" LIMIT 1) AS found ON true
	ORDER BY n`

const (
	insert = `INSERT INTO TABLE AS kept (name, head, words, expires) VALUES ($1, $2, $3, LIFE)
		ON CONFLICT (name) DO UPDATE SET head = excluded.head, words = excluded.words, expires = excluded.expires
		WHERE kept.head = '' AND kept.words = '{}'`
	update = `UPDATE TABLE SET head = $2, words = $3, expires = LIFE WHERE name = $1 AND head = $5 AND words = $6`
	remove = `DELETE FROM TABLE WHERE name = $1 AND head = $2 AND words = $3`
	reset  = `WITH gone AS (DELETE FROM TABLE WHERE name = $1) SELECT coalesce($2::bigint, ` + serverTime + `)`
)

// swapAll swaps records if all old ones are there, and none otherwise. It locks their rows, but does not
// wait for a row that another transaction has locked: that is about to change. If another transaction
// has inserted one of the new rows, it ends in an error, which undoes its changes. Old words are
// compared as text, because words that are no list are too.
const swapAll = `
WITH wanted AS MATERIALIZED (
	SELECT name COLLATE "C" AS name, old_head, old_words, head, words::bigint[] AS words, LIFE AS expires,
		old_head = '' AND old_words = '{}' AS fresh
	FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS w (name, old_head, old_words, head, words, life)
), locked AS MATERIALIZED (
	SELECT kept.name FROM wanted JOIN TABLE AS kept ON kept.name = wanted.name AND kept.head = wanted.old_head AND kept.words::text = wanted.old_words
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
	WHERE NOT fresh AND (SELECT go.all FROM go) AND kept.name = wanted.name AND kept.head = wanted.old_head AND kept.words::text = wanted.old_words
	RETURNING 1
)
SELECT CASE WHEN NOT go.all THEN 0 WHEN done = (SELECT count(*) FROM wanted) THEN 1
	ELSE ('weir: another has begun one of ' || done || ', all are tried again')::bigint END
FROM go, (SELECT (SELECT count(*) FROM inserted) + (SELECT count(*) FROM updated) AS done) AS counts`

// another is the condition of the error of swapAll.
const another = "22P02"
