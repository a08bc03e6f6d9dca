package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/identity"
)

func newKey(t testing.TB, parts ...string) keyMaker {
	t.Helper()
	p := &problems{config: &Config{}}
	m := p.key(parts, "key")
	if err := p.err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Pitfalls S12, S13 and H2 among them.
func TestKeys(t *testing.T) {
	r := func(change func(*Request)) *Request {
		r := &Request{
			Method: "get", Host: "Example.COM:8443", Path: "/a,b", RawQuery: "q=1&q=2&empty=", ClientIP: netip.MustParseAddr("192.0.2.7"),
			Header: http.Header{"X-User": {"alice", "bob"}, "Cookie": {"sid=s1; sid=s2", "other=3"}}, Attributes: map[string]string{"tenant": "t-1"},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	ip := func(text string) *Request {
		return r(func(r *Request) { r.ClientIP = netip.MustParseAddr(text) })
	}
	user := func(name string) *Request {
		return r(func(r *Request) { r.Header.Set("X-User", name) })
	}
	for _, c := range []struct {
		parts string
		r     *Request
		want  string
	}{
		{"all", r(nil), ""},
		{"client_ip header:x-user", r(nil), "192.0.2.7,alice"},
		{"method host path query:q cookie:sid attribute:tenant", r(nil), "GET,example.com,/a%2Cb,1,#" + identity.Hash("s1") + ",t-1"},
		{"hash:header:x-user hash:client_ip hash:method hash:attribute:none", r(nil), "#" + identity.Hash("alice") + ",#" + identity.Hash("192.0.2.7") + ",#" + identity.Hash("GET") + ",-"},
		{"hash:header:X-None|hash:path", r(nil), "hash:path=#" + identity.Hash("/a,b")},
		{"header:X-None", r(nil), "-"},
		{"header:X-None query:empty", r(nil), "-,-"},
		{"header:X-None|query:empty|client_ip", r(nil), "client_ip=192.0.2.7"},
		{"header:x-user|client_ip method", r(nil), "header:X-User=alice,GET"},
		{"header:X-None|query:none method", r(nil), "-,GET"},
		{"header:x-user", user("-"), "%2D"},
		{"header:x-user", user("a%#\x00\xffé\n"), "a%25%23%00%FFé%0A"},
		{"header:x-user", user("\u202ea\u0085\u2028"), "%E2%80%AEa%C2%85%E2%80%A8"},
		{"header:x-user", user("jose\u0301"), "jose\u0301"},
		{"header:x-user", user("jos\u00e9"), "jos\u00e9"},
		{"header:x-user", user(strings.Repeat("x", 128)), strings.Repeat("x", 128)},
		{"header:x-user method", user(strings.Repeat("x", 129)), "#DsnrM-dFELzdHy6lUgboLyFknFwr7L8rQz60dbNMAb0,GET"},
		{"client_ip", ip("::ffff:1.2.3.4"), "1.2.3.4"},
		{"client_ip", ip("::ffff:102:304"), "1.2.3.4"},
		{"client_ip", ip("2001:DB8:1:2::1"), "2001:db8:1:2::/64"},
		{"client_ip", ip("fe80::1%eth0"), "fe80::/64"},
		{"client_ip", ip("64:ff9b::1.2.3.4"), "64:ff9b::/64"},
		{"client_ip/128", ip("2001:DB8::1"), "2001:db8::1"},
		{"client_ip/128", ip("fe80::1%eth0"), "fe80::1"},
		{"client_ip/56", ip("2001:db8:1:2ff::1"), "2001:db8:1:200::/56"},
		{"header:X-None|client_ip", ip("2001:db8:1:2::1"), "client_ip=2001:db8:1:2::/64"},
		{"client_ip/64", ip("2001:db8:1:2:3::1.2.3.4"), "2001:db8:1:2::/64"},
		{"client_ip/64", ip("2001:db8:1:2:3::102:304"), "2001:db8:1:2::/64"},
		{"client_ip/64", ip("64:ff9b::1.2.3.4"), "64:ff9b::/64"},
		{"client_ip/64", ip("::1"), "::/64"},
		{"client_ip/64", ip("::ffff:1.2.3.4"), "1.2.3.4"},
		{"client_ip/24/48", ip("192.0.2.77"), "192.0.2.0/24"},
		{"client_ip/24/48", ip("2001:db8:1:2::7"), "2001:db8:1::/48"},
		{"client_ip", r(func(r *Request) { r.ClientIP = netip.Addr{} }), "-"},
		{"method host path", &Request{}, "-,-,-"},
	} {
		if got := newKey(t, strings.Fields(c.parts)...).key(&facts{Request: c.r}); got != c.want {
			t.Errorf("[%s] is %q, want %q", c.parts, got, c.want)
		}
	}
}

// No two tuples of values have one key, be it that one is absent, or which alternative it is of.
func TestNoTwoTuplesHaveOneKey(t *testing.T) {
	key := newKey(t, "header:X-A|attribute:b", "header:X-C|attribute:d", "hash:attribute:e")
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"", "-", "%2D", ",", "%2C", "a", "a,a", "#", "header:X-A=a", "attribute:b=a", "#" + strings.Repeat("a", 43)}),
		rapid.StringN(0, 200, 200), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }))
	draw := func(t *rapid.T) (*Request, string) {
		a, b, c, d, e := value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c"), value.Draw(t, "d"), value.Draw(t, "e")
		r := &Request{Header: http.Header{"X-A": {a}, "X-C": {c}}, Attributes: map[string]string{"b": b, "d": d, "e": e}}
		if a != "" {
			b = ""
		}
		if c != "" {
			d = ""
		}
		return r, fmt.Sprintf("%q %q %q %q %q", a, b, c, d, e)
	}
	rapid.Check(t, func(t *rapid.T) {
		r1, tuple1 := draw(t)
		r2, tuple2 := draw(t)
		if k1, k2 := key.key(&facts{Request: r1}), key.key(&facts{Request: r2}); (k1 == k2) != (tuple1 == tuple2) {
			t.Errorf("%s has the key %q, %s has %q", tuple1, k1, tuple2, k2)
		} else if len(k1) > 3*128+100 {
			t.Errorf("a key of %d bytes", len(k1))
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a,b", "")
	f.Add("-", "", "%2D", "\xff")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		key := newKey(t, "header:X-A", "header:X-B")
		k1 := key.key(&facts{Request: &Request{Header: http.Header{"X-A": {a}, "X-B": {b}}}})
		k2 := key.key(&facts{Request: &Request{Header: http.Header{"X-A": {c}, "X-B": {d}}}})
		if same := a == c && b == d; same != (k1 == k2) {
			t.Errorf("(%q, %q) has %q, (%q, %q) has %q", a, b, k1, c, d, k2)
		}
	})
}
