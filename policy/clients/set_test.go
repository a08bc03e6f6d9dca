package clients_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

const plans = `
policies:
  - name: api
    key: ["header:X-Client"]
    limits: ["3/1h"]
    plans:
      gold: ["%d/1h"]
%s
`

func parse(t *testing.T, gold int, more string) *policy.Config {
	t.Helper()
	c, err := policy.Parse(fmt.Appendf(nil, plans, gold, more), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Clients, plans and policies change while requests come: what was used stays used, and what makes no sense is refused until it does.
func TestFollowIntoASet(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"})
		s, err := policy.New(parse(t, 10, ""), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := follow(t, url, clients.Options{Policies: s})
		check := func(client string) policy.Decision {
			t.Helper()
			d, err := s.Check(t.Context(), &policy.Request{Path: "/", Header: map[string][]string{"X-Client": {client}}})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		for i := range int64(4) {
			if d := check("acme"); !d.Allowed || d.Limit != 10 || d.Remaining != 9-i {
				t.Fatalf("%+v", d.Decision)
			}
		}
		set(t, d, clients.Client{Name: "acme", Limits: limits("20/1h")})
		until(t, "the limits of its own are in effect", func() bool { return has(f, "acme") == "20/1h" })
		if d := check("acme"); !d.Allowed || d.Limit != 20 || d.Remaining != 15 { // four are used, and this one
			t.Errorf("%+v", d.Decision)
		}
		if _, err := d.Delete(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		until(t, "the default limits are in effect", func() bool { return has(f, "acme") == "" })
		if d := check("acme"); d.Allowed || d.Limit != 3 {
			t.Errorf("%+v", d.Decision)
		}

		set(t, d, clients.Client{Name: "acme", Plan: "platinum"}, clients.Client{Name: "umbrella", Plan: "gold"})
		until(t, "an unknown plan is a bad row, and holds up no other", func() bool { return f.Status().BadRows == 1 && has(f, "umbrella") == "gold" })
		if s := f.Status(); !strings.Contains(s.BadRowErrors[0], identity.Mask("acme")) || !strings.Contains(s.BadRowErrors[0], "platinum") || has(f, "acme") != "" {
			t.Errorf("%+v", s)
		}
		if err := s.Replace(parse(t, 10, `      platinum: ["100/1h"]`)); err != nil {
			t.Fatal(err)
		}
		until(t, "the plan is there", func() bool { return has(f, "acme") == "platinum" })
		if d := check("acme"); !d.Allowed || d.Limit != 100 {
			t.Errorf("%+v", d.Decision)
		}
	})
}

// With one log for both, each change is said once, with the database, and why if it is refused.
func TestChangesAreLoggedOnce(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		var log bytes.Buffer
		o := clients.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
		s, err := policy.New(parse(t, 10, ""), policy.Options{Log: o.Log})
		if err != nil {
			t.Fatal(err)
		}
		o.Policies = s
		f := follow(t, url, o)
		d := open(t, url)
		set(t, d, clients.Client{Name: "acme", Plan: "gold"})
		until(t, "a change is in effect", func() bool { return has(f, "acme") == "gold" })
		set(t, d, clients.Client{Name: "acme", Plan: "platinum"})
		until(t, "a row is bad", func() bool { return f.Status().BadRows == 1 })
		source := f.Status().Database
		if err := f.Close(); err != nil { // so that the log can be read
			t.Fatal(err)
		}
		lines := slices.DeleteFunc(strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n"), func(line string) bool {
			return strings.Contains(line, `msg="policies: `) // a warning about the configuration
		})
		if len(lines) != 4 { // the first has no clients
			t.Fatalf("logged %s", &log)
		}
		for i, want := range []string{"a change is in use", "a change is in use", "a change is in use", "client " + identity.Mask("acme")} {
			if !strings.Contains(lines[i], want) || !strings.Contains(lines[i], source) {
				t.Errorf("logged %s, want %q and %q", lines[i], want, source)
			}
		}
		if !strings.Contains(lines[3], "platinum") || !strings.Contains(lines[3], "level=ERROR") || s.Status().Clients.Source != source {
			t.Errorf("logged %s, source %q", lines[3], s.Status().Clients.Source)
		}
	})
}
