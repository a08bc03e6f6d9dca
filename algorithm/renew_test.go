package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A Renew of a limit without leases is a peek, of a state and of a word.
func TestRenewWithoutLeasesIsAPeek(t *testing.T) {
	p, err := algorithm.Compile(algorithm.MustParseLimit("10/1m"), time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := p.Word()
	state, _ := p.Apply(nil, algorithm.Op{Cost: 4}, 0)
	word, _ := w.Apply(0, algorithm.Op{Cost: 4}, 0)
	renew := algorithm.Op{Kind: algorithm.Renew, Cost: 2, End: 24e9}
	_, r := p.Apply(state, renew, 1)
	_, v := w.Apply(word, renew, 1)
	if r.Granted != 0 || r.Remaining != 6 || v != r.Verdict() {
		t.Errorf("%+v, %+v: want nothing granted, and 6 remaining", r, v)
	}
}
