package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// Eight that open a store at one time, on pools of their own as processes have, all find the table in the end.
func TestTableIsMadeOnce(t *testing.T) {
	url := postgres.SharedServer(t).URL()
	for range 10 {
		o := mine(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := postgres.Open(context.Background(), url, o)
				if err != nil {
					t.Error(err)
					return
				}
				take(t, bind(t, s, "10/1h"), "k", 1, store.OwnClock)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := query[int](t, url, `SELECT count(*) FROM `+o.Table); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	}
}

// A store of New finds out with the first decision that there is no table, and so does one whose table was dropped.
func TestTableIsMadeWhenMissing(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 2 {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if v := take(t, bind(t, s, "10/1h"), fmt.Sprint(i), 1, store.OwnClock); v.Remaining != 9 {
					t.Errorf("%+v", v)
				}
			})
		}
		wg.Wait()
		run(t, url, `DROP TABLE `+o.Table)
	}
}

// The migration may be run by hand, and again; Open then needs no right to create.
func TestMigrationByHand(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	o.Table = "by_hand.States"
	sql, err := postgres.Migration(o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, url, `CREATE SCHEMA by_hand`)
	o.NoMigrate = true
	if _, err := postgres.Open(t.Context(), url, o); err == nil || !strings.Contains(err.Error(), sql) {
		t.Errorf("without a table: %v", err)
	}
	run(t, url, sql)
	run(t, url, sql)
	take(t, bind(t, open(t, url, o), "10/1h"), "k", 1, store.OwnClock)
	if n := query[int](t, url, `SELECT count(*) FROM by_hand."States"`); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	for _, table := range []string{"a b", "a.b.c", "1a", `a"b`, "ä", strings.Repeat("x", 64), "."} {
		if _, err := postgres.Migration(postgres.Options{Table: table}); err == nil || !strings.Contains(err.Error(), "accepted:") {
			t.Errorf("table %q: %v", table, err)
		}
		if _, err := postgres.Open(t.Context(), url, postgres.Options{Table: table}); err == nil || !strings.Contains(err.Error(), "accepted:") {
			t.Errorf("table %q: %v", table, err)
		}
	}
}

// A user without the right to create is told what to run, and what was told works.
func TestUserWithoutRights(t *testing.T) {
	owner, o := postgres.SharedServer(t).URL(), mine(t)
	run(t, owner, `CREATE ROLE clerk LOGIN PASSWORD 'h0rse'`)
	clerk := strings.Replace(owner, "postgres@", "clerk:h0rse@", 1)
	_, err := postgres.Open(t.Context(), clerk, o)
	if err == nil || strings.Contains(err.Error(), "h0rse") {
		t.Fatal(err)
	}
	_, statements, found := strings.Cut(err.Error(), "CREATE TABLE")
	if !found || !strings.Contains(err.Error(), "permission denied") {
		t.Fatal(err)
	}
	create, grant, _ := strings.Cut(statements, "GRANT")
	run(t, owner, "CREATE TABLE"+create)
	_, err = postgres.Open(t.Context(), clerk, o) // it may not read yet
	if err == nil || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE, DELETE") {
		t.Fatal(err)
	}
	run(t, owner, `GRANT SELECT ON `+o.Table+` TO clerk`)
	_, err = postgres.Open(t.Context(), clerk, o) // it may not write yet
	if err == nil || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE, DELETE") {
		t.Fatal(err)
	}
	run(t, owner, "GRANT"+grant)
	b := bind(t, open(t, clerk, o), "sliding-log 10/1h")
	take(t, b, "k", 1, store.OwnClock)
	do(t, b, "k", algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
}

// A table of that name that is not ours is left alone.
func TestTableOfOthers(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	run(t, url, `CREATE TABLE `+o.Table+` (id bigint)`)
	if _, err := postgres.Open(t.Context(), url, o); err == nil || !strings.Contains(err.Error(), "not one of weir's") {
		t.Error(err)
	}
	if n := query[int](t, url, `SELECT count(*) FROM information_schema.columns WHERE table_name = $1`, o.Table); n != 1 {
		t.Errorf("it has %d columns, want 1", n)
	}
}

func TestURL(t *testing.T) {
	server := postgres.SharedServer(t).URL()
	s, err := postgres.Open(t.Context(), server+"&weir_table=limits_of_url&weir_prefix=shop&weir_timeout=9s&weir_unlogged=on&weir_migrate=on&synchronous_commit=off",
		postgres.Options{Table: "not_this"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	take(t, bind(t, s, "10/1h"), "k", 1, store.OwnClock)
	if name := query[string](t, server, `SELECT name FROM limits_of_url`); name != "shop:1:{k}::10/1h" {
		t.Errorf("the row is named %q", name)
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	const secret = "h0rse/battery"
	encoded := url.QueryEscape(secret)
	for text, want := range map[string]string{
		"redis://localhost":                                           "accepted: postgres://",
		"host=localhost password=" + secret:                           "accepted: postgres://",
		"postgres://u:" + encoded + "@db/x?weir_tabel=a":              "accepted: weir_table",
		"postgres://u:" + encoded + "@db/x?weir_table=":               "weir_table",
		"postgres://u:" + encoded + "@db/x?weir_table=a&weir_table=b": "twice",
		"postgres://u:" + encoded + "@db/x?weir_table=a-b":            "table",
		"postgres://u:" + encoded + "@db/x?weir_prefix=a%20b":         "prefix",
		"postgres://u:" + encoded + "@db/x?weir_prefix=%zz":           "weir_prefix",
		"postgres://u:" + encoded + "@db/x?weir_unlogged=maybe":       "on or off",
		"postgres://u:" + encoded + "@db/x?weir_migrate=maybe":        "on or off",
		"postgres://u:" + encoded + "@db/x?weir_timeout=0s":           "a duration above 0",
		"postgres://u:" + encoded + "@db/x?weir_timeout=fast":         "a duration above 0",
		"postgres://u:" + encoded + "@db:port/x":                      "accepted: postgres://",
		"postgres://u:" + encoded + "@db/x?sslmode=yes":               "accepted: postgres://",
		"postgres://db/x?password=" + secret + "&sslmode=yes":         "accepted: postgres://",
		"postgres://u:" + encoded + "@db/x?pool_max_conns=a":          "accepted: postgres://",
		"postgres://u:" + encoded + "@[::1/x":                         "accepted: postgres://",
		"postgres://u:" + secret + "@db/x":                            "percent-encoded",
		"postgres://u:p@" + secret + "@127.0.0.1:1/x":                 "percent-encoded",
		"postgres://u:p@h0rse@127.0.0.1:1/x":                          "percent-encoded",
		"postgres://u:p?weir_h0rse@db/x":                              "percent-encoded",
		"postgres://u:p?weir_timeout=h0rse@db/x":                      "percent-encoded",
		"postgres://u:p?h0rse@db/x":                                   "percent-encoded",
		"postgres://u:p#h0rse@db/x":                                   "percent-encoded",
		"postgres://u:p:h0rse@127.0.0.1:1/x":                          "postgres: ",
		"postgres://u:%zz" + encoded + "@db/x":                        "accepted: postgres://",
		"postgres://u:" + encoded + "@127.0.0.1:1/x":                  "postgres: ",
	} {
		_, err := postgres.Open(t.Context(), text, postgres.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "battery") || strings.Contains(err.Error(), "h0rse") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// old makes a table as weir did before there were heads, with a row in it of which 4 of 10 are used.
func old(t *testing.T, url, table string) {
	t.Helper()
	run(t, url, `CREATE TABLE `+table+` (name text COLLATE "C" PRIMARY KEY, words bigint[] NOT NULL, expires timestamptz NOT NULL)`)
	run(t, url, oldTake(table, "old"))
}

// oldTake is what weir wrote before there were heads.
func oldTake(table, key string) string {
	return `INSERT INTO ` + table + ` AS kept (name, words, expires)
		VALUES ('weir:1:{` + key + `}::fixed-window+10/1000h', ARRAY[(extract(epoch FROM now()) / 3600000)::bigint, 4], now() + interval '1000 h')
		ON CONFLICT (name) DO UPDATE SET words = ARRAY[kept.words[1], kept.words[2] + 4]`
}

// A table of an older weir gets its column while that is still at work, without being written anew, and what was used stays used.
func TestTableOfAnOlderWeir(t *testing.T) {
	url := postgres.SharedServer(t).URL()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for what, start := range map[string]func(o postgres.Options) store.Store{
		"Open": func(o postgres.Options) store.Store { return open(t, url, o) },
		"New": func(o postgres.Options) store.Store {
			s, err := postgres.New(pool, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		"by hand": func(o postgres.Options) store.Store {
			sql, err := postgres.Migration(o)
			if err != nil {
				t.Fatal(err)
			}
			run(t, url, sql)
			run(t, url, sql)
			o.NoMigrate = true
			return open(t, url, o)
		},
	} {
		o := mine(t)
		old(t, url, o.Table)
		file := `SELECT relfilenode::bigint FROM pg_class WHERE relname = '` + o.Table + `'`
		before := query[int64](t, url, file)
		s := start(o)
		for range 2 {
			if v := take(t, bind(t, s, "fixed-window 10/1000h"), "old", 1, store.OwnClock); v.Granted != 1 || v.Remaining > 5 {
				t.Errorf("%s: %+v, when 4 of 10 were used", what, v)
			}
		}
		if v := take(t, of(t, s, "n", "fixed-window 10/1000h"), "old", 7, store.OwnClock); v.Remaining != 3 {
			t.Errorf("%s: %+v", what, v)
		}
		run(t, url, oldTake(o.Table, "old"))
		run(t, url, oldTake(o.Table, "another"))
		if v := take(t, bind(t, s, "fixed-window 10/1000h"), "old", 0, store.OwnClock); v.Remaining != 0 {
			t.Errorf("%s: %+v, when the older weir has used the rest", what, v)
		}
		if v := take(t, bind(t, s, "fixed-window 10/1000h"), "another", 0, store.OwnClock); v.Remaining != 6 {
			t.Errorf("%s: %+v, when the older weir has used 4", what, v)
		}
		if after := query[int64](t, url, file); after != before {
			t.Errorf("%s: the table was written anew", what)
		}
	}
}

// Who may not change an older table is told what to run, before anything is decided; so is who may not wait for it.
func TestTableOfAnOlderWeirThatStays(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	old(t, url, o.Table)
	refuses := func(url string, o postgres.Options, want string) {
		t.Helper()
		if _, err := postgres.Open(t.Context(), url, o); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "ADD COLUMN") {
			t.Errorf("%v, want %q and a statement", err, want)
		}
	}
	by := o
	by.NoMigrate = true
	refuses(url, by, "no column head")
	run(t, url, `CREATE ROLE reader LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON `+o.Table+` TO reader`)
	refuses(strings.Replace(url, "postgres@", "reader@", 1), o, "owner")

	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b := bind(t, s, "10/1h")
	if err := refused(t, b, "k", true); err == nil || !strings.Contains(err.Error(), "ADD COLUMN") {
		t.Error(err)
	}

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM `+o.Table); err != nil { // as pg_dump does
		t.Fatal(err)
	}
	refuses(url, o, "lock timeout")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := take(t, bind(t, open(t, url, o), "fixed-window 10/1000h"), "old", 1, store.OwnClock); v.Remaining != 5 {
		t.Errorf("%+v, when 4 of 10 were used", v)
	}
	take(t, b, "k", 1, store.OwnClock) // who found no column before
}
