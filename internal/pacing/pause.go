package pacing

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// MostPause is the longest pause that a server can cause, unless requests would wait longer.
const MostPause = time.Hour

// A pause is a time for which a server asks. It ends by chance: later than the server says, or sooner if that is longer than it may be, so that the clients of a server do not all
// come back at once.
type pause struct {
	heard  time.Time
	asked  time.Duration // by the server
	chance time.Duration // a tenth of it at most, and at most ten seconds
}

func newPause(asked time.Duration, now time.Time) pause {
	asked = min(asked, header.Longest)
	return pause{now, asked, rand.N(min(asked/10, 10*time.Second) + 1)} //nolint:gosec // nothing is secret about it
}

// full returns when a pause is over, however long it is.
func (p pause) full() time.Time { return p.heard.Add(p.asked + p.chance) }

// end returns when a pause is over.
func (v *server) end(p pause) time.Time {
	if p.asked > v.longest {
		return p.heard.Add(v.longest - min(p.chance, v.longest/10))
	}
	return p.heard.Add(min(p.asked+p.chance, v.longest))
}

// due returns when a pause would be over without what is added to it by chance.
func (v *server) due(p pause) time.Time {
	if p.asked > v.longest {
		return v.end(p)
	}
	return p.heard.Add(p.asked)
}

// blocked returns until when nothing may be sent as the server has said, the zero time if something may be, or may be when requests are answered. What is added to pauses by chance
// does not count.
func (v *server) blocked(now time.Time) (until time.Time) {
	if due := v.due(v.pause); due.After(now) {
		until = due
	}
	for _, w := range v.windows {
		if due := v.due(w.pause); w.left <= 0 && due.After(now) {
			until = later(until, due)
		}
	}
	return until
}

// hurry cuts what is added to pauses by chance: to nobody who can wait for what the server says is it to be too long. Who can wait until the last time goes then; of the time to a
// deadline half at least is left for the request.
func (v *server) hurry(ctx context.Context, now, last time.Time) {
	if deadline, ok := ctx.Deadline(); ok {
		due := later(now, v.blocked(now))
		last = earlier(last, due.Add(deadline.Sub(due)/2))
	}
	cut := false
	shorten := func(p *pause) {
		if due := v.due(*p); v.end(*p).After(last) && !due.After(last) && p.asked <= v.longest {
			p.chance, cut = last.Sub(due), true
		}
	}
	shorten(&v.pause)
	for i := range v.windows {
		if v.used(v.windows[i]) {
			shorten(&v.windows[i].pause)
		}
	}
	if cut {
		v.stir(1)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
