package identity_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// left is what stands left of what a proxy has added, and might reach into it.
var left = []string{"a", `"`, `\`, `\"`, `"\`, `\\`, ",", `,"`, `,\`, ` "`, `for="`, `for="\`, "for=192.0.2.66,", `for="192.0.2.66", `, "192.0.2.66, ", "for=192.0.2.66;x=\"", ";", "=", "\xff", " "}

// checkPrefix fails if the client is another one than when only what a proxy has added is in the field.
func checkPrefix(t tester, field, prefix, comma, added string) {
	t.Helper()
	r := told(peer, field)
	r.Header[field] = []string{added}
	want := behind(t, field, proxies...).Addr(r)
	r.Header[field] = []string{prefix + comma + added}
	if got := behind(t, field, proxies...).Addr(r); got != want {
		t.Fatalf("%s: %q is %s, and behind %d bytes of a client's, %.100q, it is %s", field, added, want, len(prefix), prefix, got)
	}
	r.Header[field] = []string{prefix, added}
	if got := behind(t, field, proxies...).Addr(r); got != want {
		t.Fatalf("%s: %q is %s, and in a line behind %d bytes of a client's, %.100q, it is %s", field, added, want, len(prefix), prefix, got)
	}
}

// stops reports whether nothing left of an element matters: it is well-formed, not too long, and tells of nobody that is a proxy.
func stops(field, added string) bool {
	if field == "Forwarded" && !modelElement.MatchString(added) || field != "Forwarded" && strings.Contains(added, ",") {
		return false
	}
	return len(added) < 500 && !modelTrusts(modelTells(field, added))
}

// Pitfall H3: nothing that a client sends changes how the element is read that a proxy adds behind it, however long it is.
func TestH3NothingBeforeChangesWhatAProxyAdds(t *testing.T) {
	added := map[string][]string{
		"Forwarded": {
			`for="192.0.2.7:4711"`, "for=192.0.2.7", `for="[2001:db8::7]:_x"`, `for="\192.0.2.7"`, `for=192.0.2.7;x="\""`, `for=192.0.2.7;x="\\"`, `x="a, for=203.0.113.2";for=192.0.2.7`,
			`x="";for=192.0.2.7`, `x="\"\\\"";for="192.0.2.7"`, "for=unknown", `for="_x"`, "by=10.0.0.1", `host="a\\\",b";for=192.0.2.7;proto=https`,
		},
		"X-Forwarded-For": {"192.0.2.7", "192.0.2.7:4711", "[2001:db8::7]:1", "unknown", "", "x"},
	}
	for field, all := range added {
		for _, element := range all {
			if !stops(field, element) {
				t.Fatalf("%s: %q is no element that ends the reading", field, element)
			}
			for _, piece := range left {
				for n := range 40 {
					checkPrefix(t, field, strings.Repeat(piece, n), ", ", element)
				}
				for n := 480; n < 640; n++ {
					checkPrefix(t, field, strings.Repeat("a", n)+piece, ",", element)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom(fields[:2]).Draw(t, "field")
		prefix := strings.Repeat("a", rapid.IntRange(0, 600).Draw(t, "shift"))
		for range rapid.IntRange(0, 4).Draw(t, "pieces") {
			prefix += strings.Repeat(rapid.SampledFrom(left).Draw(t, "left"), rapid.IntRange(0, 200).Draw(t, "times"))
		}
		checkPrefix(t, field, prefix, rapid.SampledFrom([]string{",", ", ", " ,\t"}).Draw(t, "comma"), rapid.SampledFrom(added[field]).Draw(t, "added"))
	})
}

func FuzzWhatAProxyAdds(f *testing.F) {
	for _, prefix := range []string{strings.Repeat("a", 600), strings.Repeat("a", 601), `for="\`, `for="`, strings.Repeat(`\`, 513), `for=192.0.2.66;x="`} {
		f.Add(true, prefix, `for="192.0.2.7:4711"`)
		f.Add(true, prefix, `x="\"";for=192.0.2.7`)
		f.Add(false, prefix, "192.0.2.7")
	}
	f.Fuzz(func(t *testing.T, forwarded bool, prefix, added string) {
		field := "X-Forwarded-For"
		if forwarded {
			field = "Forwarded"
		}
		if len(prefix) <= 8<<10 && stops(field, added) {
			checkPrefix(t, field, prefix, ", ", added)
		}
	})
}
