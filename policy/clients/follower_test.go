package clients_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// What a database has is loaded, and what is changed in it, by weir or by plain SQL, is followed.
func TestFollow(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "umbrella", Limits: limits("1000/1m", "50/1s")})
		f := follow(t, url, clients.Options{})
		if has(f, "acme") != "gold" || has(f, "umbrella") != "1000/1m; 50/1s" || has(f, "nobody") != "" {
			t.Fatalf("loaded %q, %q, %q", has(f, "acme"), has(f, "umbrella"), has(f, "nobody"))
		}
		set(t, d, clients.Client{Name: "acme", Plan: "silver"})
		until(t, "a client changes", func() bool { return has(f, "acme") == "silver" })
		run(t, url, `UPDATE weir_clients SET plan = 'bronze' WHERE client = 'acme'`)
		until(t, "plain SQL changes a client", func() bool { return has(f, "acme") == "bronze" })
		run(t, url, `INSERT INTO weir_clients (client, limits) VALUES ('initech', 'api: 5/1s')`)
		until(t, "plain SQL adds a client", func() bool { return strings.HasPrefix(has(f, "initech"), "api: ") })
		run(t, url, `UPDATE weir_clients SET client = 'acme2' WHERE client = 'acme'`)
		until(t, "plain SQL renames a client", func() bool { return has(f, "acme") == "" && has(f, "acme2") == "bronze" })
		if n, err := d.Delete(t.Context(), "umbrella", "nobody"); n != 1 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		until(t, "a client is deleted", func() bool { return has(f, "umbrella") == "" })
		run(t, url, `DELETE FROM weir_clients`)
		until(t, "all are deleted", func() bool { return f.Status().Clients == 0 && has(f, "acme2") == "" })
		if s := f.Status(); s.Away != "" || s.Refused != "" || s.Changes < 7 || s.Change.IsZero() || s.Database == "" {
			t.Errorf("%+v", s)
		}
	})
}

// What changes many rows is told at once, and seen.
func TestLargeChange(t *testing.T) {
	many := 12_000
	if testing.Short() {
		many = 2000
	}
	last := fmt.Sprint("c", many-1)
	forEach(t, func(t *testing.T, url string) {
		f := follow(t, url, clients.Options{})
		d := open(t, url)
		n, err := d.Put(t.Context(), func(yield func(clients.Client, error) bool) {
			for i := range many {
				if !yield(clients.Client{Name: fmt.Sprint("c", i), Plan: "gold"}, nil) {
					return
				}
			}
		})
		if n != many || err != nil {
			t.Fatal(n, err)
		}
		until(t, "all are there", func() bool { return f.Status().Clients == many && has(f, last) == "gold" })
		run(t, url, `UPDATE weir_clients SET plan = 'silver'`)
		until(t, "all change", func() bool { return has(f, "c0") == "silver" && has(f, last) == "silver" })
		run(t, url, `UPDATE weir_clients SET plan = 'gold' WHERE client < 'c5'`)
		until(t, "half change", func() bool { return has(f, "c0") == "gold" && has(f, "c999") == "silver" })
		if strings.HasPrefix(url, "postgres") {
			run(t, url, `TRUNCATE weir_clients`)
			until(t, "none is left", func() bool { return f.Status().Clients == 0 })
		}
	})
}

// A change refused by the policies is not in effect, and is offered again.
func TestUseRefuses(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"})
		var silver atomic.Bool
		use := func(c policy.Clients) error {
			return c.Grants(func(g *policy.Grant) error {
				if g.Plan == "gold" || g.Plan == "silver" && silver.Load() {
					return nil
				}
				return errors.New("plan " + g.Plan + " is unknown")
			})
		}
		f := follow(t, url, clients.Options{Policies: policies{use: use}})
		set(t, d, clients.Client{Name: "umbrella", Plan: "gold"}, clients.Client{Name: "initech", Plan: "silver"})
		until(t, "the change is refused", func() bool { return f.Status().Refused != "" })
		if s := f.Status(); s.Refused != "client "+identity.Mask("initech")+": plan silver is unknown" {
			t.Errorf("%+v", s)
		}
		if has(f, "initech") != "" {
			t.Errorf("initech has %q", has(f, "initech"))
		}
		silver.Store(true) // as when the policies were changed
		until(t, "it is in effect", func() bool { return has(f, "initech") == "silver" && has(f, "umbrella") == "gold" })
		if s := f.Status(); s.Refused != "" {
			t.Errorf("%+v", s)
		}
		silver.Store(false)
		run(t, url, `DELETE FROM weir_clients WHERE client = 'initech'`)
		until(t, "what nobody has any more is not asked for", func() bool { return has(f, "initech") == "" })
	})
}
