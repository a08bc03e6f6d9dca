package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// migrationLock is an advisory lock: CREATE TABLE IF NOT EXISTS fails when two do it at one time.
const migrationLock = 0x77656972 // "weir"

// lockTimeout bounds the wait for a table that others use, in ms: while an ALTER TABLE waits for one transaction, all others wait for it.
const lockTimeout = "500"

// found is the kind of relation under the table's name.
type found int

const (
	nothing  found = iota
	outdated       // a table of an older weir, which had no heads
	current        // a table of this version, or a relation that is not weir's
)

// errOutdated is the error where a table is not to be changed.
var errOutdated = errors.New("it is an older weir's, and has no column head")

// ensure makes the table if it is not there, and the column that an older one lacks, unless that is not wanted. Of several that do it
// at a time, in this process and in others, all find it there in the end.
func (e *engine) ensure(ctx context.Context) error {
	select {
	case e.migrating <- struct{}{}:
		defer func() { <-e.migrating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	there, err := e.find(ctx)
	switch {
	case err != nil || there == current:
		return err
	case !e.makes && there == outdated:
		return errOutdated
	case !e.makes:
		return nil
	}
	err = pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = `+lockTimeout); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, e.table.migration(e.unlogged))
		return err
	})
	if condition(err) == lockNotAvailable {
		return e.hint(err, "a transaction has used it for longer than "+lockTimeout+" ms; try again when that has ended, or let an owner run once")
	}
	return err
}

// find looks first, because CREATE TABLE IF NOT EXISTS needs the right to create also if the table is
// there, and ALTER TABLE makes others wait.
func (e *engine) find(ctx context.Context) (there found, err error) {
	var exists, old bool
	err = e.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL, count(*) = 3 AND NOT coalesce(bool_or(attname = 'head'), false)
		FROM pg_attribute WHERE attrelid = to_regclass($1) AND NOT attisdropped AND attname IN ('name', 'words', 'expires', 'head')`,
		string(e.table)).Scan(&exists, &old)
	switch {
	case !exists:
		return nothing, err
	case old:
		return outdated, err
	}
	return current, err
}

// check makes the table if it is missing, and returns an error for a wrong table or a missing right.
func (e *engine) check(ctx context.Context) error {
	if err := e.ensure(ctx); err != nil {
		return e.explain(err)
	}
	if _, err := e.pool.Exec(ctx, e.load, ""); err != nil {
		return e.explain(err)
	}
	// Statements that change no row need the rights too.
	for _, statement := range []string{
		`INSERT INTO TABLE (name, head, words, expires) SELECT '', '', '{}', now() WHERE false`,
		`UPDATE TABLE SET head = '', words = '{}', expires = now() WHERE false`,
		`DELETE FROM TABLE WHERE false`,
	} {
		if _, err := e.pool.Exec(ctx, e.table.in(statement)); err != nil {
			return e.explain(err)
		}
	}
	return nil
}
