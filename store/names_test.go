package store_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

func names(t *testing.T, prefix string, spec store.Spec) store.Names {
	t.Helper()
	n, err := store.NewNames(prefix, spec)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A name is whose state it is, whatever the limit.
func TestANameOutlivesItsLimit(t *testing.T) {
	before := names(t, "", store.Spec{Name: "login", Limit: algorithm.MustParseLimit("100/1m")})
	after := names(t, "", store.Spec{Name: "login", Limit: algorithm.MustParseLimit("fixed-window 5/1h")})
	if a, b := before.Name("k"), after.Name("k"); a != b || a != "weir:1:{k}:login" {
		t.Errorf("%q and %q, want one name", a, b)
	}
}

// Pitfall S12, and S13: é of one rune and é of two are two keys.
func TestS12NoTwoTuplesHaveOneName(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	parts := []string{
		"", "%", "%25", "a", "a:b", "b", "a|b", "{", "}", "{}", "a}b", "a}:b:100/1m", "#", "*", "a?[b", " ", "\x00", "a\x00", "\xff",
		"2001:db8::1/x", "jos\u00e9", "jose\u0301", "jose", long, long + "x", "#QaHwQC8nPCqVb0", "debt", ":debt", "100/1m", "::100/1m",
	}
	limit, other := algorithm.MustParseLimit("100/1m"), algorithm.MustParseLimit("gcra 100/1m")
	specs := []store.Spec{}
	for _, name := range parts {
		specs = append(specs, store.Spec{Name: name, Limit: limit}, store.Spec{Name: name, Limit: limit, TimeDebt: true})
	}
	specs = append(specs, store.Spec{Limit: other}) // without a name the limit is one
	seen := map[string]string{}
	for _, prefix := range []string{"", "weir:1", "w"} {
		for _, spec := range specs {
			n := names(t, prefix, spec)
			for _, key := range parts {
				name := n.Name(key)
				tuple := prefix + "\n" + spec.Name + "\n" + spec.Limit.String() + "\n" + key
				if spec.TimeDebt {
					tuple += "\ndebt"
				}
				if seen[name] != "" {
					t.Fatalf("%.300q is the name of %.300q and of %.300q", name, seen[name], tuple)
				}
				seen[name] = tuple
				if len(name) > 250 || strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) >= 0 {
					t.Fatalf("%q is not 250 printable characters", name)
				}
				if strings.Count(name, "{") != 1 || strings.Count(name, "}") != 1 || strings.Contains(name, "{}") {
					t.Fatalf("%q has no one tag for a slot", name)
				}
			}
		}
	}
}

func TestTimeDebtIsOneStateForAllLimits(t *testing.T) {
	a := names(t, "", store.Spec{Name: "n", Limit: algorithm.MustParseLimit("100/1m"), TimeDebt: true})
	b := names(t, "", store.Spec{Name: "n", Limit: algorithm.MustParseLimit("gcra 7/1s"), TimeDebt: true})
	if a.Name("k") != b.Name("k") {
		t.Errorf("%q and %q: want one name", a.Name("k"), b.Name("k"))
	}
}

func FuzzNames(f *testing.F) {
	f.Add("login", "user:42", "a}", "{b")
	f.Fuzz(func(t *testing.T, name, key, otherName, otherKey string) {
		limit := algorithm.MustParseLimit("100/1m")
		one := names(t, "", store.Spec{Name: name, Limit: limit}).Name(key)
		two := names(t, "", store.Spec{Name: otherName, Limit: limit}).Name(otherKey)
		if same := name == otherName && key == otherKey; same != (one == two) {
			t.Errorf("(%q, %q) is %q, (%q, %q) is %q", name, key, one, otherName, otherKey, two)
		}
	})
}
