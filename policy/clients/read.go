package clients

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// A mark is a place in the history of the clients: the number of the latest change, and its tag, which no other history has there.
type mark struct {
	Number int64 `json:"number"`
	Tag    int64 `json:"tag"`
}

// Bounds on what the database may take.
const (
	askWithin  = 5 * time.Second // for a row
	readWithin = 5 * time.Minute // for all clients
)

// head returns where the history is now. It is one row, found by its key.
func (d *Database) head(ctx context.Context) (mark, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := d.there(); err != nil {
		return mark{}, err
	}
	return d.headIn(ctx, d.db)
}

func (d *Database) headIn(ctx context.Context, in asker) (at mark, err error) {
	err = in.QueryRowContext(ctx, d.q.head).Scan(&at.Number, &at.Tag)
	if errors.Is(err, sql.ErrNoRows) { // somebody emptied it
		err = nil
	}
	return at, err
}

// snapshot runs f in a transaction that sees the database as it is at one time.
func (d *Database) snapshot(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	o := sql.TxOptions{ReadOnly: true}
	if d.at.postgres != nil {
		o.Isolation = sql.LevelRepeatableRead
	}
	tx, err := d.db.BeginTx(ctx, &o)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, tx), rollback(tx))
}

// load reads all clients into a new table. Clients of bad rows stay as they were before, where
// before is not nil. The mark is right also if the error reports too many bad rows.
func (d *Database) load(ctx context.Context, now func() time.Time, before *Table, check check) (t *Table, at mark, err error) {
	l := newLoad(now, before, check)
	err = d.snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if at, err = d.headIn(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, d.q.all)
		if err != nil {
			return err
		}
		return each(rows, l.row)
	})
	if err == nil {
		t, err = l.table()
	}
	return t, at, err
}

// changes returns what changed since a mark, by client; nil for a client that is gone. ok is false if that can't be told: all have to be read.
func (d *Database) changes(ctx context.Context, since mark) (changed map[string]*row, at mark, ok bool, err error) {
	changed = map[string]*row{}
	err = d.snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		var known, every int
		if at, err = d.headIn(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, d.q.known, since.Number, since.Tag).Scan(&known); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, d.q.every, since.Number).Scan(&every); err != nil {
			return err
		}
		if ok = known == 1 && every == 0; !ok {
			return nil
		}
		rows, err := tx.QueryContext(ctx, d.q.changed, since.Number)
		if err != nil {
			return err
		}
		return eachChange(rows, func(name string, r *row) { changed[name] = r })
	})
	return changed, at, ok, err
}

// each calls f for each row. The row is used again for the next.
func each(rows *sql.Rows, f func(*row) error) error {
	defer func() { _ = rows.Close() }()
	var r row
	var plan, limits sql.Null[string]
	var from, until sql.Null[int64]
	for rows.Next() {
		if err := rows.Scan(&r.client, &plan, &limits, &from, &until); err != nil {
			return err
		}
		r.plan, r.limits, r.from, r.until = plan.V, limits.V, orElse(from, since), orElse(until, forever)
		if err := f(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}

func eachChange(rows *sql.Rows, f func(string, *row)) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var client, plan, limits sql.Null[string]
		var from, until sql.Null[int64]
		if err := rows.Scan(&name, &client, &plan, &limits, &from, &until); err != nil {
			return err
		}
		if !client.Valid {
			f(name, nil)
			continue
		}
		f(name, &row{name, plan.V, limits.V, orElse(from, since), orElse(until, forever)})
	}
	return rows.Err()
}

func orElse(v sql.Null[int64], other int64) int64 {
	if v.Valid {
		return v.V
	}
	return other
}
