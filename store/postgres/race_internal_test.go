package postgres

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// begin begins a transaction on another connection, which is rolled back after the test if it was not committed.
func begin(t *testing.T) pgx.Tx {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), SharedServer(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// meanwhile runs a statement of the engine, and commits the transaction, which holds it up, when it waits.
func meanwhile(t *testing.T, e *engine, tx pgx.Tx, statement func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); statement() }()
	waits := `SELECT count(*) FROM pg_locks AS wait WHERE NOT granted AND EXISTS (SELECT FROM pg_locks WHERE pid = wait.pid AND relation = $1::regclass)`
	for n := 0; n == 0; time.Sleep(2 * time.Millisecond) {
		if err := tx.Conn().QueryRow(t.Context(), waits, string(e.table)).Scan(&n); err != nil {
			t.Error(err)
			break
		}
		select {
		case <-done:
			t.Error("the statement does not wait")
			return
		default:
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	<-done
}

// The time is the clock's when it is read, and not that of the transaction's begin: what others have written meanwhile is not ahead of it.
func TestTimeIsNotThatOfTheBegin(t *testing.T) {
	e := testEngine(t, Options{})
	config := e.pool.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	e.pool = pool
	p := programs(t, "1000/1h")[0]
	for what, statement := range map[string]func() (int64, error){
		"load": func() (int64, error) {
			cell, err := e.loadOne(t.Context(), "k")
			return cell.Now, err
		},
		"take": func() (int64, error) {
			_, at, _, err := e.decideOne(t.Context(), "k", "", p, algorithm.Op{Cost: 1}, store.OwnClock)
			return at, err
		},
		"reset": func() (int64, error) {
			_, at, _, err := e.decideOne(t.Context(), "k", "", p, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
			return at, err
		},
	} {
		// On the one connection the statement is prepared already when the table is locked: preparing it is a transaction of its own.
		if _, err := statement(); err != nil {
			t.Fatal(err)
		}
		tx := begin(t)
		if _, err := tx.Exec(t.Context(), e.table.in(`LOCK TABLE IN ACCESS EXCLUSIVE MODE`)); err != nil {
			t.Fatal(err)
		}
		var at, least int64
		var err error
		meanwhile(t, e, timed{tx, &least}, func() { at, err = statement() })
		if err != nil || at < least {
			t.Errorf("%s: it says %d, %v, when it was %d before the table was let go", what, at, err, least)
		}
	}
}

// timed reads the server's clock before it commits.
type timed struct {
	pgx.Tx
	at *int64
}

func (tx timed) Commit(ctx context.Context) error {
	if err := tx.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(tx.at); err != nil {
		return err
	}
	return tx.Tx.Commit(ctx)
}

// A take that waits for a row which becomes another limit's, or which another makes, does nothing; nor does a swap for nothing where there is a head.
func TestTakeLosesToAnotherLimit(t *testing.T) {
	e := testEngine(t, Options{})
	p := programs(t, "fixed-window 1000/1000h")[0]
	for what, sql := range map[string]string{
		"changed": `UPDATE TABLE SET head = 'fixed-window 2000/1000h' WHERE name = $1`,
		"made":    `INSERT INTO TABLE SELECT $1, ARRAY[(extract(epoch FROM now()) / 3600000)::bigint, 1], now() + interval '1 h', 'fixed-window 2000/1000h'`,
	} {
		name := fmt.Sprint(what, time.Now())
		if what == "changed" {
			if _, _, done, err := e.decideOne(t.Context(), name, p.Head(), p, algorithm.Op{Cost: 1}, store.OwnClock); err != nil || !done {
				t.Fatal(done, err)
			}
		}
		tx := begin(t)
		if _, err := tx.Exec(t.Context(), e.table.in(sql), name); err != nil {
			t.Fatal(err)
		}
		var done bool
		var err error
		meanwhile(t, e, tx, func() {
			_, _, done, err = e.decideOne(t.Context(), name, p.Head(), p, algorithm.Op{Cost: 1}, store.OwnClock)
		})
		if done || err != nil {
			t.Errorf("%s: decided is %v, %v", what, done, err)
		}
		cell, err := e.loadOne(t.Context(), name)
		if err != nil || cell.Head != "fixed-window 2000/1000h" || len(cell.State) != 2 || cell.State[1] != 1 {
			t.Errorf("%s: %+v, %v", what, cell, err)
		}
		old := cell
		old.State = nil
		if swapped, err := e.swapOne(t.Context(), name, cell, old.Record, time.Hour); !swapped || err != nil {
			t.Errorf("%s: swapped is %v, %v", what, swapped, err)
		}
		if swapped, err := e.swapOne(t.Context(), name, swap.Cell{}, cell.Record, time.Hour); swapped || err != nil {
			t.Errorf("%s: a swap for nothing: %v, %v", what, swapped, err)
		}
	}
}

// A swap for words that another transaction is replacing waits for it, and is lost: it neither replaces nor removes the new ones.
func TestSwapLosesToWhoHoldsTheRow(t *testing.T) {
	e := testEngine(t, Options{})
	if _, err := e.pool.Exec(t.Context(), e.table.in(`DELETE FROM TABLE`)); err != nil {
		t.Fatal(err)
	}
	for what, state := range map[string][]int64{"removal": nil, "update": {3}} {
		if swapped, err := e.swapOne(t.Context(), what, swap.Cell{}, swap.Record{State: []int64{1}}, time.Hour); !swapped || err != nil {
			t.Fatal(swapped, err)
		}
		cell, err := e.loadOne(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		tx := begin(t)
		if _, err := tx.Exec(t.Context(), e.table.in(`UPDATE TABLE SET words = '{2}' WHERE name = $1`), what); err != nil {
			t.Fatal(err)
		}
		var swapped bool
		meanwhile(t, e, tx, func() { swapped, err = e.swapOne(t.Context(), what, cell, swap.Record{State: state}, time.Hour) })
		if swapped || err != nil {
			t.Errorf("%s: swapped is %v, %v", what, swapped, err)
		}
		if cell, err = e.loadOne(t.Context(), what); err != nil || !slices.Equal(cell.State, []int64{2}) {
			t.Errorf("%s leaves %v, %v, want what the other has written", what, cell.State, err)
		}
		if swapped, err = e.swapOne(t.Context(), what, cell, swap.Record{State: state}, time.Hour); !swapped || err != nil {
			t.Errorf("%s of what is there: %v, %v", what, swapped, err)
		}
	}
}
