package peer_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/peer"
)

func build(t *testing.T, p peer.Peer, b peer.Budget) peer.Limiter {
	t.Helper()
	l, err := p.New(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// decides reports whether the peer keeps budgets at all.
func decides(p peer.Peer) bool { return p.Kind != peer.Pacer && p.Name != "harness alone" }

func TestEveryPeerAdmitsItsBudgetAndDeniesTheRest(t *testing.T) {
	for _, p := range peer.All() {
		if !decides(p) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			l := build(t, p, peer.Budget{Count: 5, Period: 1000 * time.Hour})
			for _, key := range []string{"one", "two"} {
				n := 0
				for range 20 {
					if l.Allow(key) {
						n++
					}
				}
				if n != 5 {
					t.Errorf("key %q: admitted %d of 20, want 5", key, n)
				}
			}
		})
	}
}

func TestPacerNeverDenies(t *testing.T) {
	p, err := harness.Find("peer", "uber-go/ratelimit", peer.All())
	if err != nil {
		t.Fatal(err)
	}
	l := build(t, p, peer.Budget{Count: 1, Period: time.Hour})
	for i := range 1000 {
		if !l.Allow("key") {
			t.Fatalf("request %d denied", i)
		}
	}
}

func TestBatchAdmitsWhatOneByOneAdmits(t *testing.T) {
	p, err := harness.Find("peer", peer.WeirBatch, peer.All())
	if err != nil {
		t.Fatal(err)
	}
	batch := build(t, p, peer.Budget{Count: 5, Period: time.Hour}).(peer.Batcher).Batch()
	if n := batch(slices.Repeat([]string{"a", "b"}, 4)); n != 8 {
		t.Errorf("first batch admitted %d, want 8", n)
	}
	if n := batch(slices.Repeat([]string{"a", "b"}, 4)); n != 2 {
		t.Errorf("second batch admitted %d, want 2", n)
	}
}

func TestBareTableAdmitsExactlyItsBudgetToManyGoroutines(t *testing.T) {
	p, err := harness.Find("peer", peer.Bare, peer.All())
	if err != nil {
		t.Fatal(err)
	}
	l := build(t, p, peer.Budget{Count: 1000, Period: 1000 * time.Hour})
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				for _, key := range []string{"a", "b", "c"} {
					if l.Allow(key) {
						admitted.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n != 3000 {
		t.Errorf("admitted %d, want 3000", n)
	}
}
