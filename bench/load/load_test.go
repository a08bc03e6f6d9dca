package load_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
)

func distinct(s load.Stream) map[string]int {
	seen := map[string]int{}
	for i := range s.Len() {
		seen[s.Key(i)]++
	}
	return seen
}

func TestKeysAreDifferentAndTwentyBytesLong(t *testing.T) {
	seen := distinct(load.Each(100_000))
	if len(seen) != 100_000 {
		t.Errorf("%d different keys, want 100000", len(seen))
	}
	for k := range seen {
		if len(k) != 20 {
			t.Fatalf("key %q has %d bytes, want 20", k, len(k))
		}
	}
}

func TestStreamsAskOnlyForKeysThatWereFilled(t *testing.T) {
	known := distinct(load.Each(1000))
	for name, s := range map[string]load.Stream{"uniform": load.Uniform(5000, 1000), "zipf": load.Zipf(5000, 1000), "same": load.Same(10)} {
		for k := range distinct(s) {
			if known[k] == 0 {
				t.Fatalf("%s asks for %q", name, k)
			}
		}
	}
}

func TestStreamsAreTheSameInEveryProcess(t *testing.T) {
	zipf, again := load.Zipf(1000, 1000), load.Zipf(1000, 1000)
	uniform, uniformAgain := load.Uniform(1000, 1000), load.Uniform(1000, 1000)
	if zipf != again || uniform != uniformAgain {
		t.Error("two draws differ")
	}
}

// A run without time for a request, as on a busy machine, still makes some: its rate is a number.
func TestARunMakesRequests(t *testing.T) {
	for _, p := range peer.All() {
		got, err := load.Workloads()[0].Run(p, 0)
		if err != nil || got.Requests == 0 {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

func TestZipfFavoursItsFirstKey(t *testing.T) {
	seen := distinct(load.Zipf(100_000, 1000))
	first, last := seen[load.Each(1000).Key(0)], seen[load.Each(1000).Key(999)]
	if first < 10_000 || last > 500 {
		t.Errorf("first key %d times, last %d; want over 10000 and under 500", first, last)
	}
}

// The budgets are so far apart from what a run can use that a wrong one shows in the admitted count.
func TestOneKeyWorkloadsAdmitAllOrNothingAtEveryPeer(t *testing.T) {
	for _, p := range peer.All() {
		for _, w := range load.Workloads() {
			if w.Filled || w.Denied && p.Kind == peer.Pacer {
				continue
			}
			got, err := w.Run(p, time.Millisecond)
			for d := 2 * time.Millisecond; err == nil && got.Requests == 0 && d < time.Minute; d *= 2 { // on a starved machine
				got, err = w.Run(p, d)
			}
			if err != nil {
				t.Fatalf("%s, %s: %v", p.Name, w.Name, err)
			}
			want := got.Requests
			if w.Denied {
				want = 0
			}
			// A peer may give up after so many lost races (throttled: ten). How many it loses is up to the machine, but
			// a budget that is wrong denies nearly all.
			mayLose := int64(0)
			if w.Cores {
				mayLose = want / 2
			}
			if lost := want - got.Admitted; lost > mayLose || lost < 0 || got.Requests == 0 {
				t.Errorf("%s, %s: admitted %d of %d, want %d", p.Name, w.Name, got.Admitted, got.Requests, want)
			}
		}
	}
}
