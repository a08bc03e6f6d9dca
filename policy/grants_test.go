package policy_test

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// countedClients reports clients without a source in their name.
type countedClients struct{ staticClients }

func (c countedClients) Unqualified() int {
	return len(slices.DeleteFunc(slices.Collect(maps.Keys(c.staticClients)), policy.NamesSource))
}

const byKeyOrAddress = `policies: [{name: api, key: ["header:X-API-Key|client_ip"], limits: [fixed-window 1/1h], plans: {gold: fixed-window 9/1h}}]`

func from(address, key string) *policy.Request {
	r := &policy.Request{Method: "GET", Path: "/", Header: http.Header{}, ClientIP: netip.MustParseAddr(address)}
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	return r
}

// The value of a header is never taken for an address, nor for a client of another source.
func TestGrantsNameTheirSource(t *testing.T) {
	granted := staticClients{
		"client_ip=10.0.0.5": plan("gold"), "client_ip=2001:db8:1:2::/64": plan("gold"), "header:X-Api-Key=k1": plan("gold"), "k2": plan("gold"), "10.0.0.6": plan("gold"),
	}
	s := newSet(t, byKeyOrAddress, policy.Options{Clients: granted})
	for _, c := range []struct {
		address, key string
		want         string
	}{
		{"10.0.0.5", "", "gold"},
		{"::ffff:10.0.0.5", "", "gold"},
		{"2001:db8:1:2:3::4", "", "gold"},
		{"2001:db8:1:3::4", "", ""},
		{"192.0.2.1", "k1", "gold"},
		{"192.0.2.1", "10.0.0.5", ""},
		{"192.0.2.1", "client_ip=10.0.0.5", ""},
		{"192.0.2.1", "header:X-Api-Key=k1", ""},
		{"192.0.2.1", "2001:db8:1:2::/64", ""},
		{"10.0.0.5", "10.0.0.5", ""},
		{"192.0.2.1", "k2", ""},       // a name without a source is nobody's under two sources
		{"10.0.0.6", "", ""},          // the same
		{"192.0.2.1", "10.0.0.6", ""}, // the same
	} {
		if d := check(t, s, from(c.address, c.key)); d.Each[0].Plan != c.want {
			t.Errorf("from %s with the key %q the plan is %q, want %q", c.address, c.key, d.Each[0].Plan, c.want)
		}
	}
}

// A header with the text of an address neither spends nor renews the budget of the address.
func TestSourcesHaveBudgetsOfTheirOwn(t *testing.T) {
	s := newSet(t, byKeyOrAddress, policy.Options{})
	keys := map[string]string{}
	for _, r := range []*policy.Request{from("10.0.0.5", ""), from("192.0.2.1", "10.0.0.5"), from("192.0.2.1", "client_ip=10.0.0.5"), from("192.0.2.1", "-")} {
		d := check(t, s, r)
		if !d.Allowed {
			t.Errorf("%+v is denied by the budget of another", r)
		}
		if other, twice := keys[d.Each[0].Key]; twice {
			t.Errorf("%q is the key of two sources, also of %q", d.Each[0].Key, other)
		}
		keys[d.Each[0].Key] = r.Header.Get("X-Api-Key")
	}
}

// Names without a source are valid with one source, and refused with several.
func TestNamesWithoutASource(t *testing.T) {
	granted := countedClients{staticClients{"k1": plan("gold"), "client_ip=10.0.0.5": plan("gold"), "10.0.0.5": plan("gold")}}
	const one = `policies: [{name: api, key: "header:X-API-Key", limits: [1/1h], plans: {gold: 9/1h}}, {name: other, key: client_ip, limits: [1/1h]}]`
	s := newSet(t, one, policy.Options{Clients: granted})
	for key, want := range map[string]string{"k1": "gold", "10.0.0.5": "gold", "client_ip=10.0.0.5": "", "k": ""} {
		d := check(t, s, from("192.0.2.9", key))
		if d.Each[0].Plan != want {
			t.Errorf("with the key %q the plan is %q, want %q", key, d.Each[0].Plan, want)
		}
	}
	c, err := policy.Parse([]byte(byKeyOrAddress), "")
	if err != nil {
		t.Fatal(err)
	}
	const want = "weir: 2 of the clients are named by a value alone, and the policies take clients from client_ip, header:X-Api-Key; accepted: names with their source, such as client_ip=…"
	if err := s.Replace(c); err == nil || err.Error() != want {
		t.Errorf("of several sources: %v", err)
	}
	delete(granted.staticClients, "k1")
	delete(granted.staticClients, "10.0.0.5")
	if err := s.Replace(c); err != nil {
		t.Error(err)
	}
}

// The client of a policy with a composite key is the first part, or the part in client.
func TestGrantsOfCompositeKeys(t *testing.T) {
	s := newSet(t, `policies:
  - {name: first, key: [client_ip, "header:X-API-Key"], limits: [1/1h], plans: {gold: 9/1h}}
  - {name: wide, key: [method, client_ip], client: client_ip/48, limits: [1/1h], plans: {gold: 9/1h}}
`, policy.Options{Clients: staticClients{"client_ip=2001:db8:1:2::/64": plan("gold"), "client_ip=2001:db8:9::/48": plan("gold")}})
	for address, want := range map[string][2]string{"2001:db8:1:2::7": {"gold", ""}, "2001:db8:9:1::7": {"", "gold"}} {
		if d := check(t, s, from(address, "2001:db8:1:2::/64")); [2]string{d.Each[0].Plan, d.Each[1].Plan} != want {
			t.Errorf("%s: the plans are %q and %q, want %q", address, d.Each[0].Plan, d.Each[1].Plan, want)
		}
	}
}

func TestClientNames(t *testing.T) {
	hash := "#" + identity.Hash("secret")
	for text, want := range map[string]string{
		"acme": "acme", "a=b": "a=b", "10.0.0.5": "10.0.0.5", "": "", "=": "=",
		"client_ip=10.0.0.5": "client_ip=10.0.0.5", "client_ip=::ffff:10.0.0.5": "client_ip=10.0.0.5", "client_ip=10.0.0.5/32": "client_ip=10.0.0.5",
		"client_ip=10.0.0.77/24": "client_ip=10.0.0.0/24", "client_ip/24/64=10.0.0.77": "client_ip=10.0.0.0/24",
		"client_ip=2001:DB8:1:2:3::4": "client_ip=2001:db8:1:2::/64", "client_ip/48=2001:db8:1:2::4": "client_ip=2001:db8:1::/48",
		"client_ip=2001:db8::1/128": "client_ip=2001:db8::1/128", "client_ip/128=2001:db8::1": "client_ip=2001:db8::1/128", "client_ip=2001:db8:1:2::/56": "client_ip=2001:db8:1::/56",
		"header:x-api-key=k=1": "header:X-Api-Key=k=1", "attribute:tenant=t": "attribute:tenant=t", "method=get": "method=GET", "host=Example.com:80": "host=example.com",
		"hash:header:x-api-key=secret": "hash:header:X-Api-Key=" + hash, "cookie:sid=secret": "hash:cookie:sid=" + hash, "header:authorization=secret": "hash:header:Authorization=" + hash,
		"hash:header:X-Api-Key=#short": "hash:header:X-Api-Key=#" + identity.Hash("#short"),
	} {
		got, err := policy.ClientName(text)
		if err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
		if again, err := policy.ClientName(got); err != nil || again != got {
			t.Errorf("%q is %q in canonical form, %v", got, again, err)
		}
	}
	for text, want := range map[string]string{
		"client_ip=acme": `has the address "acme"; accepted: an address`, "client-ip=10.0.0.5": `has the source "client-ip"; accepted: client_ip,`,
		"client_ip=": "client client_ip= has no value", "headr:X=1": `has the source "headr:X"`, "client_ip/0=1.2.3.4": `has the source "client_ip/0"`,
	} {
		if got, err := policy.ClientName(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q, error %v; want %s", text, got, err, want)
		}
	}
}

// A secret is in no key and in no name of a client, and has the plan of its client.
func TestSecretsAreHashed(t *testing.T) {
	name, err := policy.ClientName("hash:header:X-API-Key=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	s := newSet(t, `policies:
  - {name: api, key: ["hash:header:X-API-Key|client_ip"], limits: [1/1h], plans: {gold: 9/1h}}
  - {name: one, key: "hash:header:X-API-Key", limits: [1/1h]}
  - {name: auth, key: [client_ip, "header:Authorization"], limits: [1/1h]}
  - {name: cookie, key: "cookie:sid", limits: [1/1h]}
`, policy.Options{Clients: staticClients{name: plan("gold")}})
	r := from("192.0.2.1", "hunter2")
	r.Header.Set("Authorization", "hunter2")
	r.Header.Set("Cookie", "sid=hunter2")
	d := check(t, s, r)
	hash := "#" + identity.Hash("hunter2")
	for i, want := range []string{"hash:header:X-Api-Key=" + hash, hash, "192.0.2.1," + hash, hash} {
		if d.Each[i].Key != want {
			t.Errorf("the key of %s is %q, want %q", d.Each[i].Policy, d.Each[i].Key, want)
		}
	}
	if d.Each[0].Plan != "gold" {
		t.Errorf("the plan is %q", d.Each[0].Plan)
	}
	x, err := s.Explain(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := x.WriteText(&text); err != nil || strings.Contains(text.String(), "hunter2") || !strings.Contains(text.String(), policy.MaskClient(name)) {
		t.Errorf("error %v, explained as %s", err, &text)
	}
	// A header with the text of the hash is another client.
	if d := check(t, s, from("192.0.2.1", hash)); d.Each[0].Plan != "" || d.Each[0].Key == "hash:header:X-Api-Key="+hash || d.Each[1].Key == hash {
		t.Errorf("the hash of a secret has its plan or its budget: %+v", d.Each)
	}
}
