package memory

import (
	"fmt"
	"strings"
	"testing"
)

// TestPitfallS14HashCollisions: keys that agree in half of their fingerprint have slots of their own, and no fingerprint is
// taken for an empty slot.
func TestPitfallS14HashCollisions(t *testing.T) {
	g := newSegment(0, 0)
	for _, fp := range []fingerprint{{1, 3}, {1, 5}, {2, 3}, fingerprint{7, 0}.with(fingerprint{}.of(&owner{index: commonOwner}))} {
		s, found := g.probe(fp)
		if found {
			t.Errorf("%v is there before it was added", fp)
		}
		g.add(s, fp, 0)
		if s, found := g.probe(fp); !found || s.hi != fp.hi || s.lo.Load() != fp.lo {
			t.Errorf("%v is not there after it was added", fp)
		}
	}
}

// TestSecondHalfTellsKeysApart: it alone does so, for keys of all lengths that differ in one place or in length only.
func TestSecondHalfTellsKeysApart(t *testing.T) {
	h := newHasher()
	seen := map[uint64]string{}
	for n := range 100 {
		keys := []string{strings.Repeat("\x00", n), strings.Repeat("a", n)}
		for i := range n {
			keys = append(keys, strings.Repeat("a", i)+"b"+strings.Repeat("a", n-i-1))
		}
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("%0*d", max(n, 3), i))
		}
		for _, key := range keys {
			if other, ok := seen[h.second(key)]; ok && other != key {
				t.Fatalf("%q and %q meet", key, other)
			}
			seen[h.second(key)] = key
		}
	}
	if a, b := newHasher(), newHasher(); a.second("a key of some length") == b.second("a key of some length") {
		t.Error("two hashers agree: they have no secrets")
	}
}
