package clients

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
)

// A Database is a connection to the clients' database, to look at and edit them. It may be used by many goroutines at a time.
type Database struct {
	at   *location
	db   *sql.DB
	q    *queries
	file os.FileInfo // of SQLite, as it was when it was opened
}

// Open opens the clients' database at a URL: sqlite:file, sqlite:///file from the root, or postgres://user:password@host:5432/database with the parameters of libpq.
//
// A missing file is made, for its user alone, and its tables are brought up to date. In PostgreSQL
// the tables are not touched: the error names [Migrate] if it has to run first.
func Open(ctx context.Context, databaseURL string) (*Database, error) {
	at, err := parseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	return at.open(ctx, true)
}

// OpenExisting is Open that does not make a file of SQLite: it is fs.ErrNotExist if it is not there.
func OpenExisting(ctx context.Context, databaseURL string) (*Database, error) {
	at, err := parseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	return at.open(ctx, false)
}

// String returns the database's URL without a password.
func (d *Database) String() string { return d.at.shown }

// Close ends the connections.
func (d *Database) Close() error { return d.db.Close() }

// open connects, and sees to it that the tables are those of this version. A file is made if it is not there, and create says so.
func (l *location) open(ctx context.Context, create bool) (*Database, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	d, err := l.connect(ctx, create)
	if err != nil {
		return nil, l.explain(err)
	}
	if l.postgres == nil {
		_, err = d.migrate(ctx)
	} else {
		err = d.checkSchema(ctx)
	}
	if err != nil {
		return nil, errors.Join(l.explain(err), d.Close())
	}
	return d, nil
}

// openWithin bounds the opening of a database, with its migrations.
const openWithin = time.Minute

// connect connects and asks for nothing but an answer.
func (l *location) connect(ctx context.Context, create bool) (*Database, error) {
	if l.postgres != nil {
		d := &Database{at: l, q: &postgresQueries, db: stdlib.OpenDB(*l.postgres)}
		return d.answering(ctx)
	}
	file, err := l.stat(create)
	if err != nil {
		return nil, err
	}
	// A transaction that writes asks for the lock when it begins, so that it never has to give up half way.
	name := (&url.URL{
		Scheme: "file", OmitHost: true, Path: l.file,
		RawQuery: "mode=rw&_txlock=immediate&_busy_timeout=5000&_pragma=cache_size(-65536)",
	}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	d := &Database{at: l, q: &sqliteQueries, db: db, file: file}
	if d, err = d.answering(ctx); err != nil {
		return nil, err
	}
	if err := d.there(); err != nil { // to know the open file
		return nil, errors.Join(err, d.db.Close())
	}
	return d, nil
}

// creation serialises the creation of files: to close a new file while a connection of this process
// has it open would release SQLite's locks on the file.
var creation sync.Mutex

// stat returns the file of SQLite. With create it makes a missing file, empty, which only its user
// can read and write; SQLite's journals get the same mode. An existing file is not opened.
func (l *location) stat(create bool) (os.FileInfo, error) {
	creation.Lock()
	defer creation.Unlock()
	file, err := os.Stat(l.file)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	f, err := os.OpenFile(l.file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // made by a different process
		return os.Stat(l.file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its folder is not there")
	}
	if err != nil {
		return nil, err
	}
	file, err = f.Stat()
	return file, errors.Join(err, f.Close())
}

// exposed returns the files that all users of the machine may read or write.
func exposed(paths ...string) (all []string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			all = append(all, path)
		}
	}
	return all
}

// Exposed returns the files of SQLite that other users of the machine may read or write: the names
// of clients may be secrets. Files made by weir are not among them. PostgreSQL has none.
func (d *Database) Exposed() []string {
	if d.at.postgres != nil {
		return nil
	}
	return exposed(d.at.file, d.at.file+"-wal", d.at.file+"-shm")
}

// answering returns the database when it answers.
func (d *Database) answering(ctx context.Context) (*Database, error) {
	d.db.SetMaxOpenConns(4)
	if err := d.db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, d.db.Close())
	}
	return d, nil
}

// there returns an error if the file that was opened is not the one under its name any more: a connection would go on reading it all the same.
func (d *Database) there() error {
	if d.at.postgres != nil {
		return nil
	}
	now, err := os.Stat(d.at.file)
	if err == nil && !os.SameFile(d.file, now) {
		err = errors.New("another file has taken its place")
	}
	return err
}

// A noFileError says less than the error of the system, which names the file once more.
type noFileError struct{}

func (noFileError) Error() string { return "there is no such file" }

func (noFileError) Unwrap() error { return fs.ErrNotExist }

// explain says which database an error is about.
func (l *location) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) && l.postgres == nil {
		err = noFileError{}
	}
	return fmt.Errorf("clients: %s: %w", l.shown, err)
}
