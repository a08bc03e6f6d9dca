package load

import (
	"testing"

	"github.com/weirlimit/weir/bench/peer"
)

func TestTheBudgetOfManyKeysAdmitsAllAtEveryPeer(t *testing.T) {
	s := Zipf(5000, 1000)
	for _, p := range peer.All() {
		l, err := p.New(many)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		for i := range s.Len() {
			if !l.Allow(s.Key(i)) {
				t.Fatalf("%s denied request %d, for key %q", p.Name, i, s.Key(i))
			}
		}
	}
}
