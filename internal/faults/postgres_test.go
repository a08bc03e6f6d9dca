package faults

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/internal/testengine"
)

// theirs selects the sessions of the load.
const theirs = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

func TestPostgreSQL(t *testing.T) {
	server := testengine.Postgres(t)
	s := system{name: "PostgreSQL", url: server.URL() + "&pool_max_conns=6", timeout: "weir_timeout", prefix: "weir_prefix"}.suite(t)
	sql := func(statements ...string) func(*run) {
		return func(r *run) {
			r.Helper()
			for _, text := range statements {
				query(r, server, text)
			}
		}
	}
	s.suffer(t, killed(server, ""))
	s.suffer(t, fault{name: "kill -9 of a session", fails: true, strike: func(r *run) {
		pids := query(r, server, theirs)
		syscall.Kill(int(pids[0]), syscall.SIGKILL) // the server ends all sessions and recovers
	}})
	s.suffer(t, stopped(server))
	s.suffer(t, closed(server))
	s.network(t, server)
	s.suffer(t, fault{name: "pg_terminate_backend", strike: repeat(func() {
		query(&run{TB: t}, server, "SELECT pg_terminate_backend(pid)::int FROM ("+theirs+") AS load")
	})})
	s.suffer(t, fault{
		name: "read-only", refusal: "25006",
		strike: sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()::int"),
		mend:   sql("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()::int"),
	})
	s.suffer(t, locked(server))
	sql("CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'first'",
		"DO $$ BEGIN EXECUTE format('COPY (VALUES (''host all guarded 127.0.0.1/32 scram-sha-256''), "+
			"(''host all all 127.0.0.1/32 trust'')) TO %L', current_setting('hba_file')); END $$",
		"SELECT pg_reload_conf()::int")(&run{TB: t})
	s.suffer(t, fault{
		name: "wrong password", by: strings.Replace(s.url, "postgres@", "guarded:first@", 1),
		strike: sql("ALTER ROLE guarded PASSWORD 'second'", "SELECT pg_terminate_backend(pid)::int FROM ("+theirs+") AS load"),
		mend:   sql("ALTER ROLE guarded PASSWORD 'first'"),
	})
}

// locked locks the table in a session of its own.
func locked(server *testengine.Server) fault {
	var conn *pgx.Conn
	return fault{
		name: "table is locked",
		strike: func(r *run) {
			conn = connect(r, server)
			if _, err := conn.Exec(r.Context(), "BEGIN; LOCK TABLE weir_states IN ACCESS EXCLUSIVE MODE"); err != nil {
				r.Fatal(err)
			}
		},
		mend: func(r *run) { conn.Close(r.Context()) },
	}
}

func connect(t testing.TB, server *testengine.Server) *pgx.Conn {
	t.Helper()
	for {
		conn, err := pgx.Connect(t.Context(), server.URL())
		if err == nil {
			t.Cleanup(func() { conn.Close(context.Background()) })
			return conn
		}
		t.Logf("not yet: %v", err) // the server recovers from a fault
		time.Sleep(20 * time.Millisecond)
	}
}

// query runs a statement and returns a column of numbers.
func query(t testing.TB, server *testengine.Server, statement string) []int32 {
	t.Helper()
	conn := connect(t, server)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), statement, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil && !strings.Contains(fmt.Sprint(err), "column") {
		t.Fatalf("%s: %v", statement, err)
	}
	return numbers
}
