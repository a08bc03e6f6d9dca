package clients_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// A name that no policy would look up is refused, and a secret is not shown.
func TestNamesAreCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"acme": "", "client_ip=10.0.0.5": "", "client_ip=2001:db8::/64": "", "header:X-Api-Key=k1": "",
		"client_ip=2001:db8::1":           `"client_ip=2001:db8::1"; accepted: its canonical form "client_ip=2001:db8::/64"`,
		"header:x-api-key=k1":             `"header:X-Api-Key=k1"`,
		"client_ip=acme":                  "accepted: an address",
		"hash:header:X-Api-Key=swordfish": "hash:header:X-Api-Key and a value that is not hashed",
	} {
		err := clients.Client{Name: name, Plan: "gold"}.Validate()
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// The statements of the upgrade note give each row its source, and a running service follows them.
func TestUpgradeOfNames(t *testing.T) {
	text, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, note, _ := strings.Cut(string(text), "**Upgrade.**")
	_, note, _ = strings.Cut(note, "```sql\n")
	note, _, _ = strings.Cut(note, "```")
	url := newSQLite(t)
	d := open(t, url)
	set(t, d, gold("k1"), gold("10.0.0.5"), gold("2001:db8:1:2::/64"), gold("1.5"))
	f := follow(t, url, clients.Options{})
	if n := f.Unqualified(); n != 4 {
		t.Errorf("%d names have no source, want 4", n)
	}
	run(t, url, note)
	until(t, "the names have sources", func() bool { return f.Unqualified() == 0 })
	for _, name := range []string{"header:X-Api-Key=k1", "client_ip=10.0.0.5", "client_ip=2001:db8:1:2::/64", "header:X-Api-Key=1.5"} {
		if has(f, name) != "gold" {
			t.Errorf("%s has %q", name, has(f, name))
		}
	}
}

// A table counts the names without a source, also after changes.
func TestUnqualified(t *testing.T) {
	table, err := clients.NewTable(gold("acme"), gold("client_ip=10.0.0.5"), gold("10.0.0.5"))
	if err != nil {
		t.Fatal(err)
	}
	if n := table.Unqualified(); n != 2 {
		t.Errorf("%d of the names have no source, want 2", n)
	}
	var _ interface {
		policy.Clients
		Unqualified() int
	} = (*clients.Follower)(nil)
}

func gold(name string) clients.Client { return clients.Client{Name: name, Plan: "gold"} }
