package acceptance_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// TestVersionsSideBySide holds docs/algorithms.md to what it states of two versions of a limit in
// force side by side: units come back no faster than under the faster version, however seldom one of
// them is used.
func TestVersionsSideBySide(t *testing.T) {
	const most = 1011 + 101
	for _, every := range []int{1, 50, 99, 101, 150} { // seconds between two uses of the version with the larger burst
		now := time.Unix(1_790_000_000, 0)
		one := weir.WithStore(memory.New(memory.Options{}))
		large, small := at(t, "100/100s", &now, weir.WithName("plan"), one), at(t, "1/1s", &now, weir.WithName("plan"), one)
		total, instant := int64(0), int64(0)
		take := func(l *weir.Limiter) {
			n, _, err := l.TakeUpTo(background, "k", 1000)
			if err != nil {
				t.Fatal(err)
			}
			total += n
			if instant += n; instant > 100 {
				t.Errorf("every %d s: %d at one instant", every, instant)
			}
		}
		for second := range 1011 {
			instant = 0
			if second%every == 0 {
				take(large)
			}
			take(small)
			now = now.Add(time.Second)
		}
		if total > most {
			t.Errorf("every %d s: %d in 1010 s, want at most %d", every, total, most)
		}
	}
}

// TestVersionsTakeTurns: a limit that is lowered for longer than its reset time, and raised, again and again.
func TestVersionsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		turn        int // seconds
		least, most int64
	}{{10, 0, 1010 + 101}, {99, 0, 1010 + 101}, {101, 0, 1010 + 101}} {
		now := time.Unix(1_790_000_000, 0)
		l, total := at(t, "100/100s", &now, weir.WithName("plan")), int64(0)
		take := func() {
			n, _, err := l.TakeUpTo(background, "k", 1000)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		for second := range 1010 {
			if second%c.turn == 0 {
				setLimit(t, l, "100/100s")
				take()
				setLimit(t, l, "1/1s")
			}
			take()
			now = now.Add(time.Second)
		}
		if total < c.least || total > c.most {
			t.Errorf("turns of %d s: %d in 1010 s, want %d to %d", c.turn, total, c.least, c.most)
		}
	}
}
