package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conditions of PostgreSQL, by their SQLSTATE.
const (
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	insufficientRight    = "42501"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

func condition(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isLost reports whether a statement was rolled back because of another, so that it has done nothing and may be tried again.
func isLost(err error) bool {
	code := condition(err)
	return code == serializationFailure || code == deadlockDetected
}

// try runs a statement. It does so twice if the connection had ended before the statement went out, or
// the table had to be made first.
func (e *engine) try(ctx context.Context, statement func() error) error {
	err := statement()
	switch {
	case err == nil:
		return nil
	case condition(err) == undefinedTable:
		if err = e.ensure(ctx); err == nil {
			err = statement()
		}
	case pgconn.SafeToRetry(err) && ctx.Err() == nil:
		err = statement()
	}
	return e.explain(err)
}

// explain says whose error it is, and what to do about it where that is known.
func (e *engine) explain(err error) error {
	var said *hint
	switch {
	case err == nil || errors.As(err, &said):
		return err
	case condition(err) == undefinedTable:
		return e.hint(err, "let its owner run once")
	case condition(err) == insufficientRight:
		return e.hint(err, "let an owner run once")
	case condition(err) == undefinedColumn:
		return fmt.Errorf("postgres: table %s is not one of weir's; accepted: one that was made by %q: %w", e.table, e.table.migration(e.unlogged), err)
	}
	return fmt.Errorf("postgres: %w", err)
}

// A hint is an error with the statements that mend it.
type hint struct {
	err  error
	text string
}

func (h *hint) Error() string { return h.text }
func (h *hint) Unwrap() error { return h.err }

func (e *engine) hint(err error, who string) error {
	return &hint{err, fmt.Sprintf("postgres: table %s: %v; %s:\n%sGRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %q;",
		e.table, err, who, e.table.migration(e.unlogged), e.table, e.pool.Config().ConnConfig.User)}
}
