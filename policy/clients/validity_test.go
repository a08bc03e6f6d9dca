package clients_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy/clients"
)

// valid_from and valid_until count when the client is looked up, without anything being loaded.
func TestValidity(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		var now atomic.Int64
		at := func(clock time.Time) { now.Store(clock.UnixMicro()) }
		at(noon)
		d := open(t, url)
		set(t, d,
			clients.Client{Name: "soon", Plan: "gold", From: noon.Add(time.Hour)},
			clients.Client{Name: "still", Plan: "gold", Until: noon.Add(time.Hour)},
			clients.Client{Name: "trial", Plan: "gold", From: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute)},
		)
		// It is over already, and broken: as if it were not there.
		run(t, url, `INSERT INTO weir_clients (client, limits, valid_until) VALUES ('gone', 'nonsense', '2026-06-01 12:00:00+00:00')`)
		f := follow(t, url, clients.Options{Now: func() time.Time { return time.UnixMicro(now.Load()) }})
		for _, s := range []struct {
			after              time.Duration
			soon, still, trial string
		}{
			{0, "", "gold", ""},
			{time.Minute - time.Microsecond, "", "gold", ""},
			{time.Minute, "", "gold", "gold"},
			{2*time.Minute - time.Microsecond, "", "gold", "gold"},
			{2 * time.Minute, "", "gold", ""},
			{time.Hour - time.Microsecond, "", "gold", ""},
			{time.Hour, "gold", "", ""},
		} {
			at(noon.Add(s.after))
			if a, b, c := has(f, "soon"), has(f, "still"), has(f, "trial"); a != s.soon || b != s.still || c != s.trial || has(f, "gone") != "" {
				t.Errorf("after %s: soon has %q, still %q, trial %q", s.after, a, b, c)
			}
		}
		if c, ok, err := d.Get(t.Context(), "trial"); !ok || err != nil || !c.From.Equal(noon.Add(time.Minute)) || !c.Until.Equal(noon.Add(2*time.Minute)) || c.Updated.IsZero() {
			t.Errorf("%+v, %v, %v", c, ok, err)
		}
	})
}

// What the database itself refuses.
func TestConstraints(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		db := plain(t, url)
		defer db.Close()
		for _, values := range []string{
			`('', 'gold', NULL, NULL, NULL)`,
			`('a', NULL, NULL, NULL, NULL)`,
			`('a', 'gold', '1/1s', NULL, NULL)`,
			`('a', '', NULL, NULL, NULL)`,
			`('a', 'gold', NULL, '2026-06-02', '2026-06-01')`,
			`('a', 'gold', NULL, '2026-06-01', '2026-06-01')`,
			`('a', 'gold', NULL, 'infinity', NULL)`,
			`('a', 'gold', NULL, 'tomorrow or so', NULL)`,
		} {
			if _, err := db.ExecContext(t.Context(), `INSERT INTO weir_clients (client, plan, limits, valid_from, valid_until) VALUES `+values); err == nil {
				t.Errorf("%s is accepted", values)
			}
		}
	})
}
