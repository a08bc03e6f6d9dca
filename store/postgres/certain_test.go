package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// decidedBy are a limit that one statement decides, and one that is loaded and swapped.
var decidedBy = []string{"100/1h", "sliding-log 100/1h"}

// refused wants an error that says that nothing was changed, or one that does not.
func refused(t *testing.T, b store.Binding, key string, certain bool) error {
	t.Helper()
	_, err := b.Do(context.Background(), key, algorithm.Op{Cost: 1}, store.OwnClock)
	if err == nil || errors.Is(err, store.ErrNothingDone) != certain {
		t.Errorf("%v: that nothing was changed should be certain: %v", err, certain)
	}
	return err
}

// Nothing was changed where no server was reached.
func TestCertainWithoutAServer(t *testing.T) {
	server := testengine.Postgres(t)
	s := open(t, server.URL(), postgres.Options{})
	for _, text := range decidedBy {
		take(t, bind(t, s, text), "k", 1, store.OwnClock)
	}
	server.Kill(t)
	for _, text := range decidedBy {
		b := bind(t, s, text)
		waitFor(func() bool { // the pool has to find its dead connections first
			_, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
			return err != nil && (errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "failed to connect"))
		})
		if err := refused(t, b, "k", true); err != nil && strings.Count(err.Error(), store.ErrNothingDone.Error()) != 1 {
			t.Errorf("%v: says it more than once", err)
		}
	}
}

// Of a statement that waits for a row when the time is over it is unknown.
func TestUncertainWhileARowIsLocked(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	for _, text := range decidedBy {
		take(t, bind(t, s, text), "k", 1, store.OwnClock)
	}
	unlock := lock(t, url, o.Table, "k")
	defer unlock()
	o.Timeout = short
	s = open(t, url, o)
	for _, text := range decidedBy {
		b := bind(t, s, text)
		waitFor(func() bool { // on a busy machine the time may be over before the statement is sent
			_, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
			if err == nil {
				t.Errorf("%s: a locked row was decided", text)
			}
			return !errors.Is(err, store.ErrNothingDone)
		})
	}
}

// Nothing was changed where the server has refused a statement.
func TestCertainWhereTheServerRefuses(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	run(t, url, fmt.Sprintf(`ALTER TABLE %s ADD CHECK (name NOT LIKE '%%{bad}%%')`, o.Table))
	for _, text := range decidedBy {
		refused(t, bind(t, s, text), "bad", true)
	}
	late := ` CREATE FUNCTION pg_temp_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stopped' USING ERRCODE = '57014'; END $$;`
	run(t, url, late+fmt.Sprintf(`CREATE TRIGGER late BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION pg_temp_late()`, o.Table))
	for _, text := range decidedBy {
		refused(t, bind(t, s, text), "stopped", false)
	}
}
