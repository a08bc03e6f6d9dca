package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// maxBadRows bounds the bad rows of a table. With more, the change is refused as a whole.
const maxBadRows = 10_000

// badRows are the invalid rows, by client.
type badRows map[string]badRow

type badRow struct {
	row
	err error
}

// add adds a bad row. It returns an error if there are too many.
func (b badRows) add(r *row, err error) error {
	if _, again := b[r.client]; !again && len(b) == maxBadRows {
		return brokenError{fmt.Errorf("clients: more than %d rows make no sense, the first of them by name: %w", maxBadRows, b.list(1)[0])}
	}
	b[r.client] = badRow{*r, err}
	return nil
}

// list returns the first of the bad rows, in order of their names, at most so many.
func (b badRows) list(most int) []*RowError {
	names := slices.Sorted(maps.Keys(b))
	list := make([]*RowError, min(most, len(names)))
	for i := range list {
		r := b[names[i]]
		list[i] = &RowError{Client: Client{Name: r.client, Plan: r.plan}, Limits: r.limits, Err: r.err}
	}
	return list
}

// BadRows returns the invalid rows of the database, in order of their names.
func (t *Table) BadRows() []*RowError { return t.bad.list(len(t.bad)) }

// retry returns the table after another check of its bad rows: they may be good under new policies,
// or expired.
func (t *Table) retry(check check) (*Table, error) {
	rows := make(map[string]*row, len(t.bad))
	for name, r := range t.bad {
		rows[name] = &r.row
	}
	return t.with(rows, check)
}

// keep returns the table with the grants of an earlier table for the clients of bad rows, where
// they are still valid.
func (t *Table) keep(earlier *Table, check check) (*Table, error) {
	next := t.clone()
	p := next.pool(check)
	for name := range t.bad {
		at, ok := earlier.term(name)
		if !ok {
			continue
		}
		if at.grant = p.intern(at.grant); check == nil || check(name, at.grant) == nil {
			next.put(name, at)
		}
	}
	return next.tidy()
}

// retry checks the bad rows of the table in use again, when a check is due.
func (f *Follower) retry(ctx context.Context, now *Table) {
	if len(now.bad) == 0 || !f.bad.due() {
		return
	}
	began := time.Now()
	t, err := now.retry(f.check())
	f.bad.next(began) // before the offer: a refused table waits too
	if err == nil && len(t.bad) < len(now.bad) {
		f.offer(ctx, t, f.mark)
	}
}

// keep returns the first table with the snapshot's grants for the clients of bad rows, if the
// snapshot is of this database. A table of bad rows alone is refused.
func (f *Follower) keep(t *Table) (*Table, error) {
	if len(t.bad) == 0 {
		return t, nil
	}
	if t.Len() == 0 {
		return nil, brokenError{t.bad.list(1)[0]}
	}
	if f.snapshot == "" {
		return t, nil
	}
	earlier, h, err := readSnapshot(f.snapshot, f.now, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		f.log.Warn("clients: the snapshot can't be read; clients of bad rows have the default limits", "snapshot", f.snapshot, "error", err)
		return t, nil
	case h.Database != f.at.shown:
		return t, nil
	}
	return t.keep(earlier, f.check())
}

// logBadRows logs that there are bad rows, or none any more.
func (f *Follower) logBadRows(ctx context.Context, t *Table) {
	if len(t.bad) == 0 {
		f.log.InfoContext(ctx, "clients: no row is bad any more", "database", f.at.shown)
		return
	}
	f.log.ErrorContext(ctx, "clients: bad rows; their clients keep the last good row, or have the default limits; all others are in effect",
		// a RowError as JSON has the name
		"database", f.at.shown, "rows", len(t.bad), "error", t.bad.list(1)[0].Error())
}
