package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// foreign are words that no limit of the tests makes.
var foreign = []string{
	"{NULL}", "{NULL,1}", "{1,NULL}", "{1,NULL,NULL}", "{{1}}", "{{1,2}}", "{{1},{2}}", "[0:0]={1}", "[0:1]={1,1}", "[2:4]={1,1,1}", "{1,2,3,4,5}",
	"{9223372036854775807}", "{-9223372036854775808}", "{9223372036854775807,0}", "{-9223372036854775808,0}", "{9223372036854775807,1,1}",
	"{-9223372036854775808,1,1}", "{1,-9223372036854775807}", "{1,-9223372036854775808,9223372036854775807}", "{-9223372036854775808,NULL}",
}

// Words that somebody else has written are an error that changes nothing, until they are reset; an empty list is a key never seen.
func TestForeignWords(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for n, text := range limits {
		b, key := bind(t, s, text), fmt.Sprint("k", n)
		capacity := algorithm.MustParseLimit(text).Capacity()
		fresh := func(what string, granted int64) {
			t.Helper()
			if v := take(t, b, key, granted, store.OwnClock); v.Granted != granted || v.Remaining != capacity-granted {
				t.Errorf("%s after %s: %+v", text, what, v)
			}
			do(t, b, key, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
		}
		write := func(words string) {
			sql := `UPDATE ` + o.Table + ` SET words = $2::text::bigint[] WHERE name LIKE '%{' || $1 || '}%'`
			if tag, err := conn.Exec(t.Context(), sql, key, words); err != nil || tag.RowsAffected() != 1 {
				t.Fatal(tag, err)
			}
		}
		for _, words := range foreign {
			take(t, b, key, 1, store.OwnClock)
			write(words)
			for _, op := range []algorithm.Op{{Cost: 1}, {}, {Cost: capacity + 1}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.TakeUpTo, Cost: 2}} {
				if v, err := b.Do(t.Context(), key, op, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
					t.Errorf("%s, %s, %+v: %+v, %v", text, words, op, v, err)
				}
			}
			var left string
			if err := conn.QueryRow(t.Context(), `SELECT words::text FROM `+o.Table+` WHERE name LIKE '%{'||$1||'}%'`, key).Scan(&left); err != nil || left != words {
				t.Errorf("%s: %s became %s, %v", text, words, left, err)
			}
			do(t, b, key, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
			fresh(words, 1)
		}
		for _, op := range []algorithm.Op{{}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Reset}} {
			take(t, b, key, 1, store.OwnClock)
			write("{}")
			if v := do(t, b, key, op, store.OwnClock); v.Remaining != capacity {
				t.Errorf("%s, {}, %+v: %+v", text, op, v)
			}
			fresh("{}", 1)
		}
		take(t, b, key, 1, store.OwnClock)
		write("{}")
		fresh("nothing", 1)
		take(t, b, key, 1, store.OwnClock)
		write("{}")
		if v := do(t, b, key, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 1}, store.OwnClock); v.Granted != 1 || v.Remaining != capacity-1 {
			t.Errorf("%s, {}: %+v", text, v)
		}
	}
}
