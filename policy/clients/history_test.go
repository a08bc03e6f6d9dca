package clients_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy/clients"
)

// PostgreSQL tells of a change: nobody has to ask.
func TestNotification(t *testing.T) {
	url := newPostgres(t)
	if _, err := clients.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	f := follow(t, url, clients.Options{Poll: time.Hour})
	d := open(t, url)
	for i := range 3 {
		plan := fmt.Sprint("p", i)
		set(t, d, clients.Client{Name: "acme", Plan: plan})
		until(t, "the change is told", func() bool { return has(f, "acme") == plan })
	}
}

// withoutTriggers runs statements in PostgreSQL that nothing notes or tells of, as what comes out of a backup.
func withoutTriggers(t *testing.T, url, statements string) {
	t.Helper()
	run(t, url, "SET session_replication_role = replica; "+statements)
}

// A change that nobody tells of is found by asking.
func TestLostNotification(t *testing.T) {
	url := newPostgres(t)
	if _, err := clients.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Plan: "gold"})
	f := follow(t, url, clients.Options{})
	withoutTriggers(t, url, `UPDATE weir_clients SET plan = 'silver'; INSERT INTO weir_clients_changes (client) VALUES ('acme')`)
	until(t, "the change is found", func() bool { return has(f, "acme") == "silver" })
	if has(f, "umbrella") != "gold" {
		t.Error("what was not noted was read: all was read for one change")
	}
}

// Where the history is another one from the latest number on, as after a fail-over, all is read.
func TestOtherHistory(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Plan: "gold"})
		f := follow(t, url, clients.Options{})
		forget := `DELETE FROM weir_clients_changes WHERE number > 1; `
		if strings.HasPrefix(url, "postgres") {
			withoutTriggers(t, url, `UPDATE weir_clients SET plan = 'silver'; `+forget+`ALTER TABLE weir_clients_changes ALTER number RESTART WITH 2;
				INSERT INTO weir_clients_changes (client) VALUES ('nobody'), ('acme')`)
		} else {
			run(t, url, `UPDATE weir_clients SET plan = 'silver'; `+forget+`UPDATE sqlite_sequence SET seq = 1; INSERT INTO weir_clients_changes (client) VALUES ('nobody'), ('acme')`)
		}
		until(t, "all is read", func() bool { return has(f, "acme") == "silver" && has(f, "umbrella") == "silver" })
	})
}

// The history is bounded, and who has not kept up with it reads all.
func TestHistoryIsBounded(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Plan: "gold"})
		f := follow(t, url, clients.Options{})
		skip := `UPDATE sqlite_sequence SET seq = 149999`
		if strings.HasPrefix(url, "postgres") {
			skip = `ALTER TABLE weir_clients_changes ALTER number RESTART WITH 150000`
		}
		run(t, url, skip)
		set(t, d, clients.Client{Name: "acme", Plan: "silver"})
		until(t, "the change is seen", func() bool { return has(f, "acme") == "silver" && has(f, "umbrella") == "gold" })
		db := plain(t, url)
		defer db.Close()
		var n, first int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*), min(number) FROM weir_clients_changes`).Scan(&n, &first); err != nil || n != 1 || first != 150_000 {
			t.Errorf("%d changes are kept, from %d; %v", n, first, err)
		}
	})
}

// Who changes clients in PostgreSQL has his turn until he commits: a number that is seen has none before it that comes later.
func TestWritersTakeTurns(t *testing.T) {
	url := newPostgres(t)
	if _, err := clients.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Plan: "gold"})
	db := plain(t, url)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), `UPDATE weir_clients SET plan = 'silver' WHERE client = 'acme'`); err != nil {
		t.Fatal(err)
	}
	const other = `SET lock_timeout = '50ms'; UPDATE weir_clients SET plan = 'silver' WHERE client = 'umbrella'`
	if _, err := db.ExecContext(t.Context(), other); err == nil || !strings.Contains(err.Error(), "lock timeout") {
		t.Errorf("another change did not wait: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), other); err != nil {
		t.Error(err)
	}
}

// takeTurn waits for the turn to change clients in PostgreSQL. The documentation has it too.
const takeTurn = `UPDATE weir_clients SET plan = plan WHERE false`

// Who locks rows before changing them takes the turn first, and so waits for nobody who waits for those rows.
func TestTurnBeforeRows(t *testing.T) {
	url := newPostgres(t)
	if _, err := clients.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	set(t, open(t, url), clients.Client{Name: "acme", Plan: "gold"})
	db := plain(t, url)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, statement := range []string{takeTurn, `SELECT FROM weir_clients WHERE client = 'acme' FOR UPDATE`} {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	other := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), `UPDATE weir_clients SET plan = 'silver' WHERE client = 'acme'`)
		other <- err
	}()
	until(t, "the other waits", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE weir_clients SET plan = ''silver''%'`).Scan(&n)
		return err == nil && n == 1
	})
	if _, err := tx.ExecContext(t.Context(), `UPDATE weir_clients SET plan = 'bronze' WHERE client = 'acme'`); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := <-other; err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil || !strings.Contains(string(text), takeTurn) {
		t.Errorf("the documentation does not say %s, %v", takeTurn, err)
	}
}

// What is read together is of one time, whatever is committed meanwhile.
func TestReadingSeesOneTime(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"})
		var plans []string
		err := d.Snapshot(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			for range 2 {
				var plan string
				if err := tx.QueryRowContext(ctx, `SELECT plan FROM weir_clients`).Scan(&plan); err != nil {
					return err
				}
				plans = append(plans, plan)
				set(t, d, clients.Client{Name: "acme", Plan: "silver"})
			}
			return nil
		})
		if err != nil || fmt.Sprint(plans) != "[gold gold]" {
			t.Errorf("read %q, %v", plans, err)
		}
	})
}
