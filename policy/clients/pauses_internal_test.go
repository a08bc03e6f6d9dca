package clients

import (
	"testing"
	"time"
)

// A change that stays refused is looked at less and less often, but within ten seconds unless looking takes half a second.
func TestNextAgain(t *testing.T) {
	var pauses []time.Duration
	for pause := time.Duration(0); len(pauses) < 8; {
		pause = nextAgain(pause, time.Millisecond)
		pauses = append(pauses, pause)
	}
	for i, want := range []int64{250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
		if got := pauses[i].Milliseconds(); got != want {
			t.Errorf("pause %d is %dms, want %dms", i, got, want)
		}
	}
	for _, before := range []time.Duration{0, 10 * time.Second, time.Minute} {
		if got := nextAgain(before, 2*time.Second); got != 40*time.Second {
			t.Errorf("after %s, and 2s of looking: %s, want 40s", before, got)
		}
	}
}

// What took long does not let the next change wait as long again.
func TestRest(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Millisecond, 30 * time.Millisecond: 30 * time.Millisecond, 4 * time.Second: 100 * time.Millisecond,
	} {
		if got := rest(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}
