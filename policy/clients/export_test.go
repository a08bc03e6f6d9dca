package clients

import (
	"context"
	"database/sql"
)

// MaxBadRows is how many bad rows a table keeps.
const MaxBadRows = maxBadRows

// Snapshot runs f in a transaction as those are read in.
func (d *Database) Snapshot(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	return d.snapshot(ctx, f)
}
