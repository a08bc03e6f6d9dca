package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// Each error has a cause, and says that nothing was changed where that is certain.
func TestCauses(t *testing.T) {
	server := func(code string) error { return fmt.Errorf("take: %w", &pgconn.PgError{Code: code}) }
	connecting := func(err error) error { return unsent{fmt.Errorf("no connection: %w", err)} }
	for _, test := range []struct {
		err     error
		cause   store.Cause
		nothing bool
	}{
		{connecting(server("53300")), store.CauseUnready, true}, // too many connections
		{connecting(server("57P03")), store.CauseUnready, true}, // starting up
		{connecting(server("28P01")), store.CauseUnready, true}, // the password
		{connecting(server("28000")), store.CauseUnready, true}, // the user
		{connecting(server("3D000")), store.CauseUnready, true}, // no such database
		{server("57P01"), store.CauseUnready, false},            // shut down during the statement
		{server("57014"), store.CauseTimeout, false},            // canceled
		{server("25006"), store.CauseRejection, true},           // read-only
		{server("42501"), store.CauseRejection, true},           // no right
		{server("53100"), store.CauseRejection, true},           // the disk is full
		{server("40003"), store.CauseRejection, false},          // completion unknown
		{connecting(context.DeadlineExceeded), store.CauseTimeout, true},
		{context.Canceled, store.CauseCaller, false},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, store.CauseLost, false},
		{io.ErrUnexpectedEOF, store.CauseLost, false},
		{swap.ErrClosed, store.CauseCaller, true},
	} {
		err := undone(test.err)
		if cause := classify(err); cause != test.cause || errors.Is(err, store.ErrNothingDone) != test.nothing {
			t.Errorf("%v: %v", err, cause)
		}
	}
}
