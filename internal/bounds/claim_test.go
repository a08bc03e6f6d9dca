package bounds

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

func TestEveryAlgorithmHasAClaim(t *testing.T) {
	claimed := map[algorithm.Algorithm]bool{}
	for _, c := range claims() {
		claimed[c.algorithm] = true
	}
	for _, a := range algorithm.All() {
		if !claimed[a] && a != algorithm.Calendar {
			t.Errorf("%s has no row in the table", a)
		}
	}
}

func TestClaimsHoldForOtherCountsAndWindows(t *testing.T) {
	for _, c := range claims() {
		for _, s := range []size{{q: 1, w: 4}, {q: 2, w: 6}, {q: 4, w: 8}} {
			if c.algorithm == algorithm.Hybrid && s.q == 1 {
				continue // see TestHybridOfOneIsAQuotaReset
			}
			options := ""
			if c.options != "" {
				options = " cells=2"
			}
			if _, err := c.check(s.q, s.w, options); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestHybridOfOneIsAQuotaReset(t *testing.T) {
	c := claim{algorithm: algorithm.Hybrid, bound: quota}
	if _, err := c.check(1, 4, ""); err != nil {
		t.Error(err)
	}
}

func TestClaimsHoldForOtherBurstsQueuesAndCells(t *testing.T) {
	try := func(name algorithm.Algorithm, b bound, released bool, options string) {
		c := claim{algorithm: name, bound: b, released: released}
		if _, err := c.check(2, 6, options); err != nil {
			t.Error(err)
		}
	}
	for n := 1; n <= 5; n++ {
		burst, queue := fmt.Sprintf(" burst=%d", n), fmt.Sprintf(" queue=%d", n)
		for _, name := range []algorithm.Algorithm{algorithm.TokenBucket, algorithm.GCRA, algorithm.LeakyBucket} {
			try(name, bucket, false, burst)
		}
		try(algorithm.LeakyQueue, bucket, false, queue)
		try(algorithm.LeakyQueue, turns, true, queue)
		if n >= 2 {
			try(algorithm.RefillBucket, refills, false, burst)
		}
	}
	for _, n := range []int{1, 2, 3, 6} {
		try(algorithm.SlidingBuckets, cells, false, fmt.Sprintf(" cells=%d", n))
	}
}

func TestAWrongClaimIsFound(t *testing.T) {
	right := bucket
	for name, change := range map[string]func(*bound){
		"half-open": func(b *bound) { b.halfOpen = burst },
		"closed":    func(b *bound) { b.closed = burstLess },
		"mixed":     func(b *bound) { b.mixed = burstLess },
		"interval":  func(b *bound) { b.any = grid.any },
	} {
		wrong := right
		change(&wrong)
		c := claim{algorithm: algorithm.GCRA, bound: wrong}
		if _, err := c.check(3, 6, ""); err == nil || !strings.Contains(err.Error(), "gcra 3/6ns") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestReactionOfTheLinearFamily(t *testing.T) {
	for _, c := range claims() {
		for _, tenths := range speeds {
			found, err := reaction(c.algorithm, tenths)
			if err != nil {
				t.Fatal(err)
			}
			burst := algorithm.Limit{Algorithm: c.algorithm, Count: reactionCount, Period: 1}.Capacity()
			switch c.algorithm {
			case algorithm.TokenBucket, algorithm.GCRA, algorithm.LeakyBucket, algorithm.LeakyQueue, algorithm.Cooldown, algorithm.MinInterval:
				// (b−1)·a/(a−1) rounded down, and 1.
				if want := (burst-1)*tenths/(tenths-10) + 1; found != want {
					t.Errorf("%s at %d tenths: %d, want %d", c.algorithm, tenths, found, want)
				}
			case algorithm.Exponential:
				a := float64(tenths) / 10
				if want := int64(a * reactionCount * math.Log(a/(a-1))); found != want {
					t.Errorf("%s at %d tenths: %d, want %d", c.algorithm, tenths, found, want)
				}
			}
		}
	}
}
