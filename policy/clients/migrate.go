package clients

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

//go:embed migrations
var migrationFiles embed.FS

// A Migration is a numbered step of the tables from nothing to those of this version. Steps are never changed once published.
type Migration struct {
	Number int // from 1
	Name   string
	SQL    string
}

// migrations returns all steps of a kind of database, in order.
func (l *location) migrations() ([]Migration, error) {
	dir := "migrations/sqlite"
	if l.postgres != nil {
		dir = "migrations/postgres"
	}
	files, err := migrationFiles.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []Migration
	for i, f := range files { // in the order of their names
		text, err := migrationFiles.ReadFile(path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".sql"), "_")
		all = append(all, Migration{Number: i + 1, Name: name, SQL: string(text)})
	}
	return all, nil
}

// Migrate brings the tables of the database at a URL up to those of this version, in one transaction, and returns the steps that it
// took: none if there was nothing to do. Several may do it at one time. A database of a newer version is an error.
func Migrate(ctx context.Context, databaseURL string) ([]Migration, error) {
	at, err := parseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	d, err := at.connect(ctx, true)
	if err != nil {
		return nil, at.explain(err)
	}
	steps, err := d.migrate(ctx)
	if err != nil {
		err = at.explain(err)
	}
	return steps, errors.Join(err, d.Close())
}

// Script returns what Migrate runs on a new database of the URL's kind, for who runs it by hand. It does not connect.
func Script(databaseURL string) (string, error) {
	at, err := parseURL(databaseURL)
	if err != nil {
		return "", err
	}
	steps, err := at.migrations()
	if err != nil {
		return "", err
	}
	q := &sqliteQueries
	if at.postgres != nil {
		q = &postgresQueries
	}
	var b strings.Builder
	b.WriteString(q.prepare + "BEGIN;\n" + q.migrations + "\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "\n%s"+q.done+"\n", s.SQL, s.Number)
	}
	b.WriteString("COMMIT;\n")
	return b.String(), nil
}

// migrate takes the steps that are missing. It writes nothing if there is none.
func (d *Database) migrate(ctx context.Context) ([]Migration, error) {
	for end := time.Now().Add(askWithin); ; {
		steps, err := d.migrateOnce(ctx)
		// SQLite does not always wait for others who make the same file.
		busy, ok := errors.AsType[*sqlite.Error](err)
		if !ok || busy.Code()&0xff != sqlitelib.SQLITE_BUSY || time.Now().After(end) || !sleep(ctx, 20*time.Millisecond) {
			return steps, err
		}
	}
}

func (d *Database) migrateOnce(ctx context.Context) (taken []Migration, err error) {
	steps, err := d.at.migrations()
	if err != nil {
		return nil, err
	}
	if at, err := d.schema(ctx, d.db); err != nil || at >= len(steps) {
		return nil, errors.Join(err, tooNew(at, len(steps)))
	}
	if _, err := d.db.ExecContext(ctx, d.q.prepare); err != nil {
		return nil, err
	}
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			taken, err = nil, errors.Join(err, rollback(tx))
		}
	}()
	if d.q.lock != "" {
		if _, err := tx.ExecContext(ctx, d.q.lock); err != nil {
			return nil, err
		}
	}
	// Somebody else may have been quicker. Whether the table is there is not asked again: a session that has not found one may not find it for a while.
	if _, err := tx.ExecContext(ctx, d.q.migrations); err != nil {
		return nil, err
	}
	at, err := d.latest(ctx, tx)
	if err == nil {
		err = tooNew(at, len(steps))
	}
	if err != nil {
		return nil, err
	}
	for _, s := range steps[at:] {
		if _, err := tx.ExecContext(ctx, s.SQL+fmt.Sprintf(d.q.done, s.Number)); err != nil {
			return nil, fmt.Errorf("migration %d (%s): %w", s.Number, s.Name, err)
		}
	}
	return steps[at:], tx.Commit()
}

// checkSchema returns an error if the tables are not those of this version.
func (d *Database) checkSchema(ctx context.Context) error {
	steps, err := d.at.migrations()
	if err != nil {
		return err
	}
	at, err := d.schema(ctx, d.db)
	switch {
	case err != nil:
		return err
	case at == 0:
		return errors.New("it has no clients' tables; run weir db migrate, or what weir db migrate --print prints")
	case at < len(steps):
		return fmt.Errorf("its clients' tables are of version %d, and should be of %d; run weir db migrate", at, len(steps))
	}
	return tooNew(at, len(steps))
}

func tooNew(at, known int) error {
	if at <= known {
		return nil
	}
	return fmt.Errorf("its clients' tables are of version %d, of a newer weir; this one knows up to %d", at, known)
}

// An asker is a connection or a transaction.
type asker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// schema returns the number of the latest migration that was run, 0 for none.
func (d *Database) schema(ctx context.Context, in asker) (at int, err error) {
	exists := `SELECT count(*) FROM sqlite_schema WHERE name = 'weir_clients_migrations'`
	if d.at.postgres != nil {
		exists = `SELECT count(to_regclass('weir_clients_migrations'))`
	}
	var n int
	if err := in.QueryRowContext(ctx, exists).Scan(&n); err != nil || n == 0 {
		return 0, err
	}
	return d.latest(ctx, in)
}

// latest is schema where the table of migrations is there.
func (d *Database) latest(ctx context.Context, in asker) (at int, err error) {
	err = in.QueryRowContext(ctx, `SELECT coalesce(max(number), 0) FROM weir_clients_migrations`).Scan(&at)
	if missing, ok := errors.AsType[*pgconn.PgError](err); ok && missing.Code == "42501" {
		err = fmt.Errorf("%w; run GRANT SELECT ON weir_clients, weir_clients_changes, weir_clients_migrations TO the user of the URL", err)
	}
	return at, err
}
