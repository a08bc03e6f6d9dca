package clients_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy/clients"
)

// What no row can have is not asked for: PostgreSQL would refuse the question, and SQLite answer it.
func TestTextThatNoRowHas(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		for _, text := range []string{"a\xff", "a\x00"} {
			errs := map[string]error{}
			_, _, errs["client"] = d.Get(t.Context(), text)
			_, deleted := d.Delete(t.Context(), "b", text)
			errs["client of Delete"] = deleted
			for field, f := range map[string]clients.Filter{"plan": {Plan: text}, "prefix": {Prefix: text}, "after": {After: text}} {
				for _, err := range d.List(t.Context(), f) {
					errs[field] = err
				}
			}
			for _, field := range []string{"client", "client of Delete", "plan", "prefix", "after"} {
				name, _, _ := strings.Cut(field, " ")
				if err := errs[field]; err == nil || !strings.Contains(err.Error(), "clients: "+name+" is ") || !strings.Contains(err.Error(), "accepted: UTF-8 without NUL") {
					t.Errorf("%s %q: %v", field, text, err)
				}
			}
		}
	})
}

// A row that makes no sense comes with what it has, and those after it come too.
func TestListBrokenRow(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		run(t, url, `INSERT INTO weir_clients (client, plan, limits) VALUES ('a', NULL, 'many'), ('b', 'gold', NULL)`)
		d := open(t, url)
		var names, broken []string
		for c, err := range d.List(t.Context(), clients.Filter{}) {
			names = append(names, c.Name)
			if b, ok := errors.AsType[*clients.RowError](err); ok {
				broken = append(broken, b.Client.Name+" "+b.Limits+" "+b.Error())
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if strings.Join(names, " ") != "a b" || len(broken) != 1 || !strings.HasPrefix(broken[0], "a many client "+identity.Mask("a")+": weir: limit ") {
			t.Errorf("listed %q, broken %q", names, broken)
		}
		c, ok, err := d.Get(t.Context(), "a")
		if b, is := errors.AsType[*clients.RowError](err); !ok || !is || c.Name != "a" || b.Limits != "many" {
			t.Errorf("got %+v, %v, %v", c, ok, err)
		}
	})
}
