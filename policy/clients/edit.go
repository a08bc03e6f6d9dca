package clients

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"math"
	"time"
)

// chunk is how many clients a statement of PostgreSQL writes at most. It is more than its triggers note one by one, so that a million is soon told.
const chunk = 20_000

// Put writes clients, new ones and ones that are there already: all of them, or none if there is an error. It returns how many it wrote.
func (d *Database) Put(ctx context.Context, clients iter.Seq2[Client, error]) (n int, err error) {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, d.at.explain(err)
	}
	write := d.writer(ctx, tx)
	for c, err := range clients {
		if err == nil {
			err = c.Validate()
		}
		if err == nil {
			err = write(&c)
		}
		if err != nil {
			return 0, errors.Join(err, rollback(tx))
		}
		n++
	}
	if err := write(nil); err != nil {
		return 0, errors.Join(err, rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return 0, d.at.explain(err)
	}
	return n, nil
}

// writer returns what writes one client after the other. It is called with nil after the last.
func (d *Database) writer(ctx context.Context, tx *sql.Tx) func(*Client) error {
	if d.at.postgres != nil {
		return d.chunkWriter(ctx, tx)
	}
	put, err := tx.PrepareContext(ctx, d.q.put)
	return func(c *Client) error {
		if err != nil {
			return d.at.explain(err)
		}
		if c == nil {
			return put.Close()
		}
		return d.said(put.ExecContext(ctx, c.Name, null(c.Plan), null(FormatLimits(c.Limits)), c.Note, micros(c.From), micros(c.Until)))
	}
}

// chunkWriter is a writer that writes many with one statement.
func (d *Database) chunkWriter(ctx context.Context, tx *sql.Tx) func(*Client) error {
	var names, notes []string
	var plans, limits []*string
	var from, until []*int64
	has := map[string]bool{} // a statement may write no client twice
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		err := d.said(tx.ExecContext(ctx, d.q.put, names, plans, limits, notes, from, until))
		names, plans, limits, notes, from, until = names[:0], plans[:0], limits[:0], notes[:0], from[:0], until[:0]
		clear(has)
		return err
	}
	return func(c *Client) error {
		if c == nil || len(names) == chunk || has[c.Name] {
			if err := flush(); err != nil || c == nil {
				return err
			}
		}
		has[c.Name] = true
		names, notes = append(names, c.Name), append(notes, c.Note)
		plans, limits = append(plans, nullable(null(c.Plan))), append(limits, nullable(null(FormatLimits(c.Limits))))
		from, until = append(from, nullable(micros(c.From))), append(until, nullable(micros(c.Until)))
		return nil
	}
}

func nullable[T any](v sql.Null[T]) *T {
	if !v.Valid {
		return nil
	}
	return &v.V
}

// said is the error of a statement, explained.
func (d *Database) said(_ sql.Result, err error) error {
	if err != nil {
		return d.at.explain(err)
	}
	return nil
}

// rollback ends a transaction, if its context has not done that.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Set writes one client.
func (d *Database) Set(ctx context.Context, c Client) error {
	_, err := d.Put(ctx, func(yield func(Client, error) bool) { yield(c, nil) })
	return err
}

// Get returns one client; ok is false if the database does not have it. The error is a [*RowError] if it makes no sense.
func (d *Database) Get(ctx context.Context, client string) (c Client, ok bool, err error) {
	if err := checkText("client", client); err != nil {
		return Client{}, false, err
	}
	c, err = d.scanClient(d.db.QueryRowContext(ctx, d.q.get, client))
	if errors.Is(err, sql.ErrNoRows) {
		return Client{}, false, nil
	}
	return c, c.Name != "", err
}

// Delete removes clients, all of them or none if there is an error, and returns how many there were.
func (d *Database) Delete(ctx context.Context, clients ...string) (n int, err error) {
	for _, c := range clients {
		if err := checkText("client", c); err != nil {
			return 0, err
		}
	}
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, d.at.explain(err)
	}
	for _, c := range clients {
		result, err := tx.ExecContext(ctx, d.q.remove, c)
		if err != nil {
			return 0, errors.Join(d.at.explain(err), rollback(tx))
		}
		gone, err := result.RowsAffected()
		if err != nil {
			return 0, errors.Join(d.at.explain(err), rollback(tx))
		}
		n += int(gone)
	}
	if err := tx.Commit(); err != nil {
		return 0, d.at.explain(err)
	}
	return n, nil
}

// A Filter says which clients to list. The zero Filter is for all.
type Filter struct {
	Plan   string // those of this plan
	Prefix string // those whose names begin with it
	After  string // those whose names come after it, byte by byte
	Most   int    // at most so many; 0 is no bound
}

func (f Filter) validate() error {
	return errors.Join(checkText("plan", f.Plan), checkText("prefix", f.Prefix), checkText("after", f.After))
}

// List returns the clients that a filter asks for, in order of their names, byte by byte. With one that makes no sense comes a [*RowError]. Any
// other error comes last.
func (d *Database) List(ctx context.Context, f Filter) iter.Seq2[Client, error] {
	return func(yield func(Client, error) bool) {
		if err := f.validate(); err != nil {
			yield(Client{}, err)
			return
		}
		most := int64(math.MaxInt64)
		if f.Most > 0 {
			most = int64(f.Most)
		}
		rows, err := d.db.QueryContext(ctx, d.q.list, f.After, f.Prefix, f.Plan, most)
		if err != nil {
			yield(Client{}, d.at.explain(err))
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			c, err := d.scanClient(rows)
			_, broken := errors.AsType[*RowError](err)
			if !yield(c, err) || err != nil && !broken {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Client{}, d.at.explain(err))
		}
	}
}

// scanClient reads a whole row, also if it is broken.
func (d *Database) scanClient(in interface{ Scan(into ...any) error }) (c Client, err error) {
	var plan, limits sql.Null[string]
	var from, until, updated sql.Null[int64]
	if err := in.Scan(&c.Name, &plan, &limits, &from, &until, &c.Note, &updated); err != nil {
		return Client{}, d.at.explain(err)
	}
	c.Plan, c.From, c.Until, c.Updated = plan.V, moment(from), moment(until), moment(updated)
	at, err := newPool(nil).term(&row{c.Name, plan.V, limits.V, orElse(from, since), orElse(until, forever)})
	if err != nil {
		return c, &RowError{Client: c, Limits: limits.V, Err: err}
	}
	c.Limits = at.grant.Limits
	return c, nil
}

func null(s string) sql.Null[string] { return sql.Null[string]{V: s, Valid: s != ""} }

func micros(t time.Time) sql.Null[int64] {
	return sql.Null[int64]{V: t.UnixMicro(), Valid: !t.IsZero()}
}

func moment(us sql.Null[int64]) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return time.UnixMicro(us.V).UTC()
}
