package identity_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/identity"
)

// said finds what a map says, as sources of any name.
func said(values map[string]string, name string) identity.Source {
	return identity.Func(name, func(*http.Request) string { return values[name] })
}

func TestEncode(t *testing.T) {
	for value, want := range map[string]string{
		"": "-", "-": "%2D", "--": "--", "a": "a", "a,b": "a%2Cb", "%2C": "%252C", "#": "%23", "\x00\x1f\x7f\xff": "%00%1F%7F%FF", "a b": "a b",
		"jos\u00e9": "jos\u00e9", "jose\u0301": "jose\u0301", "\ufffd": "\ufffd", "header:X=a|b": "header:X=a|b",
		"\u0085\u009b31m": "%C2%85%C2%9B31m", "a\u00a0b": "a%C2%A0b", "\u200b\u200d": "%E2%80%8B%E2%80%8D", "a\u2028b\u2029": "a%E2%80%A8b%E2%80%A9",
		"\u202eecila\u2066": "%E2%80%AEecila%E2%81%A6", "\ufeff": "%EF%BB%BF", "\U000e0041": "%F3%A0%81%81", "\U0010ffff": "%F4%8F%BF%BF", "\ue000": "%EE%80%80",
		"\u65e5\U0001f600": "\u65e5\U0001f600", "\xe2\x80": "%E2%80", "\u2028\xff": "%E2%80%A8%FF",
		strings.Repeat("\u2028", 14):       strings.Repeat("%E2%80%A8", 14),
		strings.Repeat("\u2028", 15):       "#" + hash(strings.Repeat("\u2028", 15)),
		strings.Repeat("x", 128):           strings.Repeat("x", 128),
		strings.Repeat("x", 129):           "#DsnrM-dFELzdHy6lUgboLyFknFwr7L8rQz60dbNMAb0",
		strings.Repeat(",", 42) + "xx":     strings.Repeat("%2C", 42) + "xx",
		strings.Repeat(",", 42) + "xxx":    "#" + hash(strings.Repeat(",", 42)+"xxx"),
		"x" + strings.Repeat("\u00e9", 64): "#" + hash("x"+strings.Repeat("\u00e9", 64)),
	} {
		if got := identity.Encode(value); got != want {
			t.Errorf("%.50q is %q, want %q", value, got, want)
		}
	}
}

// Pitfall S12: these pairs of tuples have met somewhere.
func TestS12TuplesThatLookAlike(t *testing.T) {
	megabyte := strings.Repeat("x", 1<<20)
	for _, c := range [][2][2]string{
		{{"a:b", "c"}, {"a", "b:c"}}, {{"a|b", ""}, {"a", "b"}}, {{"a,b", ""}, {"a", "b"}}, {{"", "a"}, {"a", ""}}, {{"", ""}, {"-", "-"}}, {{"a%2Cb", ""}, {"a,b", ""}},
		{{"a\x00", "b"}, {"a", "\x00b"}}, {{"2001:db8::1", "/x"}, {"2001:db8:", ":1/x"}}, {{megabyte, "a"}, {megabyte + "x", "a"}}, {{identity.Encode(megabyte), ""}, {megabyte, ""}},
		{{"a", "a"}, {"A", "a"}}, {{"\xff", ""}, {"\ufffd", ""}}, {{"\xff", ""}, {"%FF", ""}},
	} {
		var keys [2]string
		for i := range c {
			values := map[string]string{"a": c[i][0], "b": c[i][1]}
			keys[i] = identity.Key{said(values, "a"), said(values, "b")}.Of(nil)
		}
		if keys[0] == keys[1] {
			t.Errorf("%.80q and %.80q have one key, %q", c[0], c[1], keys[0])
		}
	}
}

// Pitfall S12: no two tuples have one key, be it that one is absent, or which of several sources it is of, however deep; and no key is long.
func TestS12NoTwoTuplesHaveOneKey(t *testing.T) {
	megabyte := strings.Repeat("x", 1<<20)
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "-", "%2D", ",", "%2C", "a", "a,a", "#", "a=a", "b=a", "a|b=a", "a|b=b=a", "#" + strings.Repeat("a", 43)}),
		rapid.StringN(0, 200, 200), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{megabyte, megabyte + "x"}))
	draw := func(t *rapid.T, draw int) (key string, tuple [3]string) {
		values := map[string]string{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			values[name] = value.Draw(t, fmt.Sprint(name, draw))
		}
		s := func(name string) identity.Source { return said(values, name) }
		k := identity.Key{identity.First(identity.First(s("a"), s("b")), s("c"), identity.Hashed(s("d"))), s("e"), identity.Hashed(s("a")), identity.First(s("e"))}
		if err := k.Err(); err != nil {
			t.Fatal(err)
		}
		first := "-"
		for _, name := range []string{"a", "b", "c", "d"} {
			if values[name] != "" {
				first = name + ":" + values[name]
				break
			}
		}
		return k.Of(nil), [3]string{first, values["e"], values["a"]}
	}
	rapid.Check(t, func(t *rapid.T) {
		k1, tuple1 := draw(t, 1)
		k2, tuple2 := draw(t, 2)
		if (k1 == k2) != (tuple1 == tuple2) {
			t.Errorf("%.50q has the key %q, %.50q has %q", tuple1, k1, tuple2, k2)
		}
		if len(k1) > 4*128+3 {
			t.Errorf("a key of %d bytes", len(k1))
		}
	})
}

func TestKeys(t *testing.T) {
	values := map[string]string{"a": "x,y", "b": "z"}
	a, b, none := said(values, "a"), said(values, "b"), said(values, "none")
	for _, c := range []struct {
		key  identity.Key
		want string
	}{
		{nil, ""},
		{identity.Key{}, ""},
		{identity.Key{identity.Everyone()}, "all"},
		{identity.Key{a}, "x%2Cy"},
		{identity.Key{none}, "-"},
		{identity.Key{{}}, "-"},
		{identity.Key{a, none, b}, "x%2Cy,-,z"},
		{identity.Key{identity.First(none, b), identity.First(none)}, "b=z,-"},
		{identity.Key{identity.First(identity.First(none, a), b)}, "none|a=a=x%2Cy"},
	} {
		if got := c.key.Of(nil); got != c.want {
			t.Errorf("the key is %q, want %q", got, c.want)
		}
	}
}

// What is changed in the list afterwards changes nothing.
func TestFirstHasItsOwnSources(t *testing.T) {
	values := map[string]string{"a": "x", "b": "y"}
	sources := []identity.Source{said(values, "a"), said(values, "b")}
	first := identity.First(sources...)
	sources[0], sources[1] = identity.Source{}, identity.Everyone()
	if got := first.Value(nil); got != "a=x" {
		t.Errorf("the first is %q, want a=x", got)
	}
}

// Pitfall H8: what makes no sense is an error of the Key, before there is a request.
func TestKeysThatAreRefused(t *testing.T) {
	all := identity.Everyone()
	for _, c := range []struct {
		key  identity.Key
		want string
	}{
		{nil, "identity: a key is of 0 sources; accepted: 1 to 8; Everyone counts all as one"},
		{identity.Key{all, all, all, all, all, all, all, all, all}, "identity: a key is of 9 sources"},
		{identity.Key{all, {}}, "identity: a source is the zero Source"},
		{identity.Key{all, identity.Peer.Network(32, 0)}, "identity: client_ip's bits of IPv6 is 0"},
		{identity.Key{identity.First(all, identity.Header(""))}, "identity: a header's name is empty"},
	} {
		var e *identity.SourceError
		if err := c.key.Err(); !asSourceError(err, &e) || !strings.HasPrefix(err.Error(), c.want) || e.Accept == "" {
			t.Errorf("%v: %v, want %s", c.key, err, c.want)
		}
	}
	if err := (identity.Key{all, all, all, all, all, all, all, all}).Err(); err != nil {
		t.Errorf("8 sources: %v", err)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a,b", "")
	f.Add("-", "", "%2D", "\xff")
	f.Add("\u202e", "\u0085", "%E2%80%AE", "\u2028\ue000")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		key := func(a, b string) string {
			values := map[string]string{"a": a, "b": b}
			return identity.Key{said(values, "a"), identity.First(said(values, "none"), said(values, "b"))}.Of(nil)
		}
		k1, k2 := key(a, b), key(c, d)
		if same := a == c && b == d; same != (k1 == k2) {
			t.Errorf("(%q, %q) has %q, (%q, %q) has %q", a, b, k1, c, d, k2)
		}
		if len(k1) > 2*128+1 {
			t.Errorf("a key of %d bytes", len(k1))
		}
		if i := strings.IndexFunc(k1, func(c rune) bool { return !unicode.IsPrint(c) }); i >= 0 || !utf8.ValidString(k1) {
			t.Errorf("(%q, %q) has %q, which can't be printed", a, b, k1)
		}
	})
}
