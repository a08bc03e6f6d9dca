package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
	"github.com/weirlimit/weir/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openFor, testengine.Close) }

// patience is a timeout beyond the reach of tests on a busy machine.
const patience = 10 * time.Minute

// openFor opens a store for the suite, also in processes of its own.
func openFor(url string, o storetest.Options) (store.Store, error) {
	return postgres.Open(context.Background(), url, postgres.Options{
		Prefix: "suite", TrustClientTime: o.TrustClientTime, Timeout: patience,
	})
}

// open opens a store, and closes it after the test.
func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixNano()

// tables counts the tables of tests.
var tables atomic.Int64

// mine are options with a table of the test's own.
func mine(t testing.TB) postgres.Options {
	t.Helper()
	return postgres.Options{Table: fmt.Sprint("own_", tables.Add(1)), Timeout: patience}
}

func trusted(t testing.TB) postgres.Options {
	t.Helper()
	o := mine(t)
	o.TrustClientTime = true
	return o
}

func bind(t testing.TB, s store.Store, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func do(t testing.TB, b store.Binding, key string, op algorithm.Op, now int64) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(context.Background(), key, op, now)
	if err != nil {
		t.Errorf("%.20q, %+v: %v", key, op, err)
	}
	return v
}

func take(t testing.TB, b store.Binding, key string, cost, now int64) algorithm.Verdict {
	t.Helper()
	return do(t, b, key, algorithm.Op{Cost: cost}, now)
}

// query reads one value from the server.
func query[T any](t testing.TB, url, sql string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// run runs statements on the server.
func run(t testing.TB, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// waitFor returns when a condition holds. Only the test binary has a deadline.
func waitFor(there func() bool) {
	for !there() {
		time.Sleep(5 * time.Millisecond)
	}
}

// lock locks the rows of a key until it is told to let go.
func lock(t testing.TB, url, table, key string) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	sql := `SELECT name FROM ` + table + ` WHERE name LIKE '%{' || $1 || '}%' FOR UPDATE`
	var name string
	if err := tx.QueryRow(context.Background(), sql, strings.ReplaceAll(key, " ", "\\%20")).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(context.Background()), conn.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}
}
