package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// Conditions of PostgreSQL, by their SQLSTATE.
const (
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	lockNotAvailable     = "55P03"
	insufficientRight    = "42501"
	planOutdated         = "0A000" // not supported: a prepared statement now returns other types
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	completionUnknown    = "40003"
	connectionException  = "08" // a class
	intervention         = "57" // a class: somebody has stopped the statement, or the server
)

func condition(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
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
// the table, or a column of it, had to be made first.
func (e *engine) try(ctx context.Context, statement func(*pgxpool.Conn) error) error {
	err := e.send(ctx, statement)
	switch {
	case err == nil:
		return nil
	case condition(err) == undefinedTable || condition(err) == undefinedColumn:
		if err = e.ensure(ctx); err == nil {
			err = e.send(ctx, statement)
		} else {
			err = unsent{err}
		}
	case pgconn.SafeToRetry(err) && ctx.Err() == nil:
		err = e.send(ctx, statement)
	}
	return e.explain(err)
}

// send waits for a connection, and runs a statement on it. The wait ends a little before the time of the
// operation, so that the caller still gets the error that nothing was changed.
func (e *engine) send(ctx context.Context, statement func(*pgxpool.Conn) error) error {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		waiting, cancel = context.WithTimeout(ctx, left-left/8)
	}
	conn, err := e.pool.Acquire(waiting)
	cancel()
	if err != nil {
		return unsent{fmt.Errorf("no connection: %w", err)}
	}
	defer conn.Release()
	if err = statement(conn); condition(err) == planOutdated { // it has done nothing, and is prepared anew
		err = statement(conn)
	}
	return err
}

// unsent is an error from before a statement went out.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// undone adds to an error that nothing was changed, if that is certain.
func undone(err error) error {
	var said *hint
	switch {
	case err == nil || !changedNothing(err):
		return err
	case errors.As(err, &said): // it ends with statements, which nothing may follow
		return &hint{errors.Join(said.err, swap.ErrNothingDone), said.text}
	}
	return fmt.Errorf("%w; %w", err, swap.ErrNothingDone)
}

// changedNothing reports whether a statement that ended in an error has certainly changed nothing: it was
// not sent, or the server has refused it and rolled it back. The effect is unknown if the connection was
// lost or the server was stopping.
func changedNothing(err error) bool {
	var early unsent
	if errors.As(err, &early) || pgconn.SafeToRetry(err) {
		return true
	}
	code := condition(err)
	return code != "" && code != completionUnknown && !strings.HasPrefix(code, connectionException) && !strings.HasPrefix(code, intervention)
}

// explain adds the package to an error, and the statements that mend it if they are known.
func (e *engine) explain(err error) error {
	var said *hint
	switch {
	case err == nil || errors.As(err, &said):
		return err
	case condition(err) == undefinedTable:
		return e.hint(err, "let its owner run once")
	case condition(err) == insufficientRight || errors.Is(err, errOutdated):
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

// unready are conditions, or classes of them, of a server that carries out nothing for anybody.
var unready = []string{
	"53300", // too many connections
	"57P01", // it is being shut down
	"57P02", // it has crashed
	"57P03", // it starts
	"28",    // a class: the user or the password is refused
	"3D000", // there is no such database
}

const canceled = "57014" // the server's statement_timeout, or somebody

// classify returns the cause of an error.
func classify(err error) store.Cause {
	code := condition(err)
	_, network := errors.AsType[net.Error](err)
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case slices.ContainsFunc(unready, func(class string) bool { return code != "" && strings.HasPrefix(code, class) }):
		return store.CauseUnready
	case code == canceled:
		return store.CauseTimeout
	case code != "":
		return store.CauseRejection
	case errors.Is(err, swap.ErrClosed), errors.Is(err, context.Canceled),
		errors.Is(err, store.ErrUnnamed), errors.Is(err, store.ErrClientTime):
		return store.CauseCaller
	case errors.Is(err, context.DeadlineExceeded): // no connection was free in time
		return store.CauseTimeout
	case connecting:
		return store.CauseConnection
	case network, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return store.CauseLost
	}
	return store.CauseRejection
}
