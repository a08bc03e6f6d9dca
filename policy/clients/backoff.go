package clients

import "time"

// A backoff is when to look again at what was refused. The reason may go without a change: a plan may come, and the time of a row may be
// over.
type backoff struct {
	again time.Time
	pause time.Duration // before that
}

func (b *backoff) due() bool { return !time.Now().Before(b.again) }

// next sets the time to look again, after looking since began.
func (b *backoff) next(began time.Time) {
	b.pause = nextAgain(b.pause, time.Since(began))
	b.again = time.Now().Add(b.pause)
}

// Backing off while the database is away, from and to.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// Pauses between looking again at a change that was refused, from and to.
const (
	firstAgain = 250 * time.Millisecond
	lastAgain  = 10 * time.Second
)

// nextAgain is the pause after one of before, 0 for none, if looking took so long: it takes no more than a twentieth of a processor.
func nextAgain(before, took time.Duration) time.Duration {
	return max(min(max(2*before, firstAgain), lastAgain), 20*took)
}

// rest is the pause after a step that took so long. Changes that come thick are taken together, but none has to wait long for that.
func rest(took time.Duration) time.Duration {
	return min(max(took, 10*time.Millisecond), 100*time.Millisecond)
}
