package clients_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// badValues are plans and limits of invalid rows, and parts of the reason. The policies know no
// plan platinum.
var badValues = map[string][]string{
	"NULL, '1000 per minute'": {"weir: limit has", "accepted:"},
	"NULL, '1000/0m'":         {"weir: limit has period", "accepted:"},
	"'platinum', NULL":        {"plan platinum is unknown"},
}

// A bad row holds up no other row: its client keeps the last good row.
func TestBadRowHoldsUpNoOther(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		for values, reason := range badValues {
			run(t, url, `DELETE FROM weir_clients; INSERT INTO weir_clients (client, plan) VALUES ('acme', 'gold'), ('umbrella', 'gold')`)
			f := follow(t, url, clients.Options{Policies: policies{check: without("platinum")}})
			run(t, url, `BEGIN; INSERT INTO weir_clients (client, plan, limits) VALUES ('initech', `+values+`);
				DELETE FROM weir_clients WHERE client = 'acme'; INSERT INTO weir_clients (client, plan, limits) VALUES ('acme', `+values+`);
				UPDATE weir_clients SET plan = 'silver' WHERE client = 'umbrella'; COMMIT`)
			until(t, "the good row is in effect", func() bool { return has(f, "umbrella") == "silver" })
			if has(f, "acme") != "gold" || has(f, "initech") != "" {
				t.Errorf("%s: acme has %q, initech %q", values, has(f, "acme"), has(f, "initech"))
			}
			s := f.Status()
			if s.BadRows != 2 || s.BadRowsSince.IsZero() || len(s.BadRowErrors) != 2 || s.Refused != "" || s.Clients != 2 {
				t.Fatalf("%s: %+v", values, s)
			}
			for i, name := range []string{"acme", "initech"} {
				text := s.BadRowErrors[i]
				if !strings.HasPrefix(text, "client "+identity.Mask(name)+": ") || strings.Contains(text, name) {
					t.Errorf("%s: %s", values, text)
				}
				for _, part := range reason {
					if !strings.Contains(text, part) {
						t.Errorf("%s: %s, want %q", values, text, part)
					}
				}
			}
			if bad := f.Table().BadRows(); len(bad) != 2 || bad[0].Client.Name != "acme" || bad[1].Client.Name != "initech" {
				t.Errorf("%s: %v", values, bad)
			}
			run(t, url, `UPDATE weir_clients SET plan = 'bronze', limits = NULL WHERE client = 'umbrella'`)
			until(t, "the next change is in effect", func() bool { return has(f, "umbrella") == "bronze" })
			run(t, url, `UPDATE weir_clients SET plan = NULL, limits = '7/1m' WHERE client = 'acme'; DELETE FROM weir_clients WHERE client = 'initech'`)
			until(t, "the rows are mended", func() bool { return has(f, "acme") == "7/1m" && f.Status().BadRows == 0 })
			if s := f.Status(); s.BadRows != 0 || !s.BadRowsSince.IsZero() || s.BadRowErrors != nil {
				t.Errorf("%s: %+v", values, s)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// At the start there is no last good row: the client has the default limits, or its grant in the
// snapshot.
func TestStartWithBadRow(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		for values := range badValues {
			run(t, url, `DELETE FROM weir_clients; INSERT INTO weir_clients (client, plan) VALUES ('acme', 'gold'), ('umbrella', 'silver')`)
			o := clients.Options{Policies: policies{check: without("platinum")}}
			withSnapshot := o
			withSnapshot.Snapshot = filepath.Join(t.TempDir(), "clients.snapshot")
			follow(t, url, withSnapshot).Close()
			run(t, url, `DELETE FROM weir_clients WHERE client = 'acme';
				INSERT INTO weir_clients (client, plan, limits) VALUES ('acme', `+values+`), ('initech', `+values+`), ('new', 'gold', NULL)`)
			// twice: the second snapshot is of a table with bad rows
			for i, o := range []clients.Options{o, withSnapshot, withSnapshot} {
				f := follow(t, url, o)
				f.Close()
				s := f.Status()
				if s.BadRows != 2 || !s.FromSnapshot.IsZero() || s.Refused != "" || has(f, "umbrella") != "silver" || has(f, "new") != "gold" || has(f, "initech") != "" {
					t.Errorf("%s, start %d: %+v, umbrella has %q, initech %q", values, i, s, has(f, "umbrella"), has(f, "initech"))
				}
				if want := []string{"", "gold", "gold"}[i]; has(f, "acme") != want {
					t.Errorf("%s, start %d: acme has %q, want %q", values, i, has(f, "acme"), want)
				}
			}
		}
	})
}

// A database of bad rows alone is refused at the start, and so are too many bad rows.
func TestTooManyBadRows(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		run(t, url, `INSERT INTO weir_clients (client, limits) VALUES ('acme', 'many'), ('umbrella', 'many')`)
		if _, err := tryFollow(t, url, clients.Options{}); err == nil || !strings.Contains(err.Error(), "client "+identity.Mask("acme")+": weir: limit has") {
			t.Errorf("only bad rows: %v", err)
		}
		run(t, url, `DELETE FROM weir_clients; INSERT INTO weir_clients (client, plan) VALUES ('acme', 'gold')`)
		f := follow(t, url, clients.Options{})
		fill := `INSERT INTO weir_clients (client, limits) SELECT 'c' || n, 'many' FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %d) SELECT n FROM r) AS r`
		run(t, url, fmt.Sprintf(fill, clients.MaxBadRows+1))
		until(t, "the change is refused", func() bool { return f.Status().Refused != "" })
		if s := f.Status(); !strings.Contains(s.Refused, fmt.Sprintf("more than %d rows make no sense", clients.MaxBadRows)) || s.Clients != 1 || has(f, "acme") != "gold" {
			t.Errorf("%+v", s)
		}
		run(t, url, `DELETE FROM weir_clients WHERE client <> 'acme' AND client <> 'c1'; UPDATE weir_clients SET plan = 'silver' WHERE client = 'acme'`)
		until(t, "the rest is in effect", func() bool { return has(f, "acme") == "silver" })
		if s := f.Status(); s.Refused != "" || s.BadRows != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A bad row is looked at again: when the policies have its plan, and when its time is over, without
// another change.
func TestBadRowIsLookedAtAgain(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		var now atomic.Int64
		now.Store(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
		var known atomic.Bool
		check := func(g *policy.Grant) error {
			if g.Plan == "platinum" && !known.Load() {
				return errors.New("plan platinum is unknown")
			}
			return nil
		}
		run(t, url, `INSERT INTO weir_clients (client, plan) VALUES ('acme', 'gold')`)
		f := follow(t, url, clients.Options{Now: func() time.Time { return time.UnixMicro(now.Load()) }, Policies: policies{check: check}})
		run(t, url, `INSERT INTO weir_clients (client, plan, limits, valid_until) VALUES ('umbrella', NULL, 'many', '2026-06-01 13:00:00+00:00');
			UPDATE weir_clients SET plan = 'platinum' WHERE client = 'acme'`)
		until(t, "both are bad", func() bool { return f.Status().BadRows == 2 })
		now.Add(time.Hour.Microseconds())
		until(t, "the time of one is over", func() bool { return f.Status().BadRows == 1 })
		if has(f, "acme") != "gold" {
			t.Errorf("acme has %q", has(f, "acme"))
		}
		known.Store(true)
		until(t, "the policies have the plan", func() bool { return f.Status().BadRows == 0 })
		if has(f, "acme") != "platinum" {
			t.Errorf("acme has %q", has(f, "acme"))
		}
	})
}

// The last good row counts while it is valid, also after a full reload, and ends with the row
// itself.
func TestLastGoodRow(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		var now atomic.Int64
		now.Store(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
		run(t, url, `INSERT INTO weir_clients (client, plan, valid_until) VALUES ('acme', 'gold', '2026-06-01 13:00:00+00:00'), ('umbrella', 'gold', NULL)`)
		f := follow(t, url, clients.Options{Now: func() time.Time { return time.UnixMicro(now.Load()) }})
		run(t, url, `UPDATE weir_clients SET plan = NULL, limits = 'many', valid_until = NULL`)
		until(t, "both are bad", func() bool { return f.Status().BadRows == 2 })
		run(t, url, `DELETE FROM weir_clients_changes; INSERT INTO weir_clients (client, plan) VALUES ('new', 'gold')`) // there is no history any more
		until(t, "all is read", func() bool { return has(f, "new") == "gold" })
		if has(f, "acme") != "gold" || has(f, "umbrella") != "gold" || f.Status().BadRows != 2 {
			t.Errorf("acme has %q, umbrella %q, %+v", has(f, "acme"), has(f, "umbrella"), f.Status())
		}
		now.Add(time.Hour.Microseconds())
		if has(f, "acme") != "" || has(f, "umbrella") != "gold" {
			t.Errorf("later acme has %q, umbrella %q", has(f, "acme"), has(f, "umbrella"))
		}
		run(t, url, `DELETE FROM weir_clients WHERE client = 'umbrella'`)
		until(t, "the row is gone", func() bool { return has(f, "umbrella") == "" && f.Status().BadRows == 1 })
	})
}

// Bad rows are logged once, and once when there is none any more, without the names of clients, in
// JSON too.
func TestBadRowsAreLogged(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		run(t, url, `INSERT INTO weir_clients (client, plan) VALUES ('acme-secret', 'gold'), ('umbrella', 'gold')`)
		var log bytes.Buffer
		f := follow(t, url, clients.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
		run(t, url, `UPDATE weir_clients SET plan = NULL, limits = 'many' WHERE client = 'acme-secret'`)
		until(t, "it is bad", func() bool { return f.Status().BadRows == 1 })
		run(t, url, `UPDATE weir_clients SET plan = 'silver' WHERE client = 'umbrella'`)
		until(t, "another changes", func() bool { return has(f, "umbrella") == "silver" })
		run(t, url, `DELETE FROM weir_clients WHERE client = 'acme-secret'`)
		until(t, "it is mended", func() bool { return f.Status().BadRows == 0 })
		if err := f.Close(); err != nil { // so that the log can be read
			t.Fatal(err)
		}
		text := log.String()
		if strings.Count(text, "bad rows; ") != 1 || strings.Count(text, "no row is bad any more") != 1 || strings.Contains(text, "acme") ||
			!strings.Contains(text, `"rows":1,"error":"client `+identity.Mask("acme-secret")+`: weir: limit has`) {
			t.Errorf("logged %s", text)
		}
	})
}
