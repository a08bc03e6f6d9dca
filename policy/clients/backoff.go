package clients

import "time"

// A backoff is the time of the next check of a refused change. The reason may pass without a
// change: a plan may be added, and a row may expire.
type backoff struct {
	again time.Time
	pause time.Duration // before again
}

func (b *backoff) due() bool { return !time.Now().Before(b.again) }

// next sets the time of the next check, after a check since began.
func (b *backoff) next(began time.Time) {
	b.pause = nextAgain(b.pause, time.Since(began))
	b.again = time.Now().Add(b.pause)
}

// Backing off while the database is away, from and to.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// Bounds on the pause between checks of a refused change.
const (
	firstAgain = 250 * time.Millisecond
	lastAgain  = 10 * time.Second
)

// nextAgain returns the pause after a check. before is the previous pause, or 0; took is the
// duration of the check. Checks take at most a twentieth of a processor.
func nextAgain(before, took time.Duration) time.Duration {
	return max(min(max(2*before, firstAgain), lastAgain), 20*took)
}

// rest returns the pause after a step of this duration. Frequent changes are applied together,
// after a short wait.
func rest(took time.Duration) time.Duration {
	return min(max(took, 10*time.Millisecond), 100*time.Millisecond)
}
