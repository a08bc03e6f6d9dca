package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// migrationLock is an advisory lock: CREATE TABLE IF NOT EXISTS fails when two do it at one time.
const migrationLock = 0x77656972 // "weir"

// ensure makes the table if it is not there, unless that is not wanted. Of several that do it at a time, in this process and in others,
// all find it there in the end.
func (e *engine) ensure(ctx context.Context) error {
	select {
	case e.migrating <- struct{}{}:
		defer func() { <-e.migrating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	there, err := e.exists(ctx)
	if err != nil || there || !e.makes {
		return err
	}
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, e.table.migration(e.unlogged))
		return err
	})
}

// exists asks first, because CREATE TABLE IF NOT EXISTS needs the right to create also where there is nothing to create.
func (e *engine) exists(ctx context.Context) (there bool, err error) {
	err = e.pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, string(e.table)).Scan(&there)
	return there, err
}

// check makes the table if it has to, and reports what is wrong with it, or with the rights on it.
func (e *engine) check(ctx context.Context) error {
	if err := e.ensure(ctx); err != nil {
		return e.explain(err)
	}
	if _, err := e.pool.Exec(ctx, e.load, ""); err != nil {
		return e.explain(err)
	}
	// What changes no row needs the rights all the same.
	for _, statement := range []string{
		`INSERT INTO TABLE (name, words, expires) SELECT '', '{}', now() WHERE false`,
		`UPDATE TABLE SET words = '{}', expires = now() WHERE false`,
		`DELETE FROM TABLE WHERE false`,
	} {
		if _, err := e.pool.Exec(ctx, e.table.in(statement)); err != nil {
			return e.explain(err)
		}
	}
	return nil
}
