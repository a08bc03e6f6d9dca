package clients_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testengine.Close()
	os.Exit(code)
}

var shared = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Postgres(t) })

var schemas atomic.Int64

// kinds make a new, empty database of each kind.
var kinds = map[string]func(t testing.TB) string{
	"sqlite":   newSQLite,
	"postgres": newPostgres,
}

func newSQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "clients ?#%20.db")
}

func newPostgres(t testing.TB) string {
	t.Helper()
	server := shared(t).URL()
	schema := fmt.Sprint("own_", schemas.Add(1))
	run(t, server, `CREATE SCHEMA `+schema)
	return server + "&search_path=" + schema
}

// forEach runs a test on each kind of database, migrated.
func forEach(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for kind, create := range kinds {
		t.Run(kind, func(t *testing.T) {
			url := create(t)
			if _, err := clients.Migrate(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			test(t, url)
		})
	}
}

// plain opens a database as others than weir do.
func plain(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, name := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, name = "sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)+"?_busy_timeout=600000"
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// run runs statements.
func run(t testing.TB, url, statements string) {
	t.Helper()
	db := plain(t, url)
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statements); err != nil {
		t.Fatalf("%v\n%s", err, statements)
	}
}

func open(t testing.TB, url string) *clients.Database {
	t.Helper()
	d, err := clients.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// follow follows a database, and logs to the test.
func follow(t testing.TB, url string, o clients.Options) *clients.Follower {
	t.Helper()
	f, err := tryFollow(t, url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func tryFollow(t testing.TB, url string, o clients.Options) (*clients.Follower, error) {
	t.Helper()
	if o.Poll == 0 {
		o.Poll = 20 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return clients.Follow(t.Context(), url, o)
}

// policies check and use clients by its functions. The zero value accepts all.
type policies struct {
	check func(*policy.Grant) error
	use   func(policy.Clients) error
}

func (p policies) ClientCheck() func(string, *policy.Grant) error {
	return func(_ string, g *policy.Grant) error {
		if p.check == nil {
			return nil
		}
		return p.check(g)
	}
}

func (p policies) UseClients(c policy.Clients) error {
	if p.use == nil {
		return nil
	}
	return p.use(c)
}

// without refuses grants of a plan.
func without(plan string) func(*policy.Grant) error {
	return func(g *policy.Grant) error {
		if g.Plan == plan {
			return errors.New("plan " + plan + " is unknown")
		}
		return nil
	}
}

// until returns when a condition holds. It has no deadline but that of the test binary.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	t.Logf("waiting until: %s", what)
	for !condition() {
		time.Sleep(5 * time.Millisecond)
	}
}

// has reports what a client has: a plan, limits, or nothing.
func has(c policy.Clients, client string) string {
	g, ok := c.Grant(client)
	switch {
	case !ok:
		return ""
	case g.Plan != "":
		return g.Plan
	}
	return clients.FormatLimits(g.Limits)
}

func limits(texts ...string) map[string][]weir.Limit {
	var all []weir.Limit
	for _, text := range texts {
		all = append(all, weir.MustParseLimit(text))
	}
	return map[string][]weir.Limit{"": all}
}

func set(t testing.TB, d *clients.Database, all ...clients.Client) {
	t.Helper()
	for _, c := range all {
		if err := d.Set(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}
