package pacing

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// A server is what is known of a server: what it said, what is under way to it, and who waits.
type server struct {
	waiters []*waiter // in the order in which they came
	flights []flight  // requests that were let go and are not answered, in order
	sent    uint64    // the number of the last that was let go; when it was made, of the last that was let go to any server

	notBefore time.Time // of Retry-After
	windows   []window  // of RateLimit, each name once
	// width, if not 0, is how many requests may be under way of those after the number paused: after a pause they come back one by one.
	width  int
	paused uint64
}

// A flight is a request that is under way.
type flight struct {
	number uint64
	at     time.Time // when it was sent
}

// A window is what a server said of one limit.
type window struct {
	name    string
	left    int64 // as it last said
	until   time.Time
	sent    uint64 // how many requests had been let go when it said so: later ones it could not count
	counted uint64 // flights up to this number are sure to be counted in left; others may not be
	other   bool   // left counts something other than requests: it matters only when it is 0
}

// settled is how long after one request another has to be sent to be counted after it by the server, for all that networks do.
const settled = 2 * time.Second

// after returns how many requests are under way whose number is higher.
func (v *server) after(number uint64) int {
	i, _ := slices.BinarySearchFunc(v.flights, number+1, func(f flight, n uint64) int { return cmp.Compare(f.number, n) })
	return len(v.flights) - i
}

// used reports whether nothing is left of a window.
func (v *server) used(w window) bool {
	return w.left <= 0 || !w.other && w.left <= int64(v.after(w.counted))
}

// pace makes requests go one by one from now on, or if width is 0, no longer.
func (v *server) pace(width int) {
	v.width, v.paused = width, v.sent
}

// mostWindows is how many limits of a server are kept: those that leave the least.
const mostWindows = 16

// blocked returns until when nothing may be sent, the zero time if something may be.
func (v *server) blocked(now time.Time) (until time.Time) {
	if v.notBefore.After(now) {
		until = v.notBefore
	}
	for _, w := range v.windows {
		if w.left <= 0 && w.until.After(now) && w.until.After(until) {
			until = w.until
		}
	}
	return until
}

// open reports whether one more request may be sent.
func (v *server) open(now time.Time) bool {
	v.expire(now)
	if v.notBefore.After(now) || v.width > 0 && v.after(v.paused) >= v.width {
		return false
	}
	return !slices.ContainsFunc(v.windows, v.used)
}

// expire forgets the windows that are over. If one was used up, its requests come back one by one.
func (v *server) expire(now time.Time) {
	v.windows = slices.DeleteFunc(v.windows, func(w window) bool {
		over := !w.until.After(now)
		if over && v.used(w) {
			v.pace(1)
		}
		return over
	})
}

// idle reports whether the server is as one that was never asked.
func (v *server) idle(now time.Time) bool {
	v.expire(now)
	return len(v.flights) == 0 && len(v.waiters) == 0 && len(v.windows) == 0 && !v.notBefore.After(now)
}

// learn keeps what the answer to a request says.
func (v *server) learn(said Said, f flight, now time.Time) {
	report := said.Report
	if report.Retry && (said.Outcome == Denied || said.Outcome == Busy) {
		// Retry-After wins over what the limits say, of this answer and of those before.
		v.windows = nil
		v.pace(1)
		if report.RetryAfter > 0 {
			v.notBefore = later(v.notBefore, now.Add(jittered(report.RetryAfter)))
		}
		return
	}
	report.Limits = slices.DeleteFunc(report.Limits, func(s header.State) bool { return s.Within <= 0 || s.Unit == "concurrent-requests" })
	for i := range v.windows { // what the answer is silent on may have counted it too
		if w := &v.windows[i]; !slices.ContainsFunc(report.Limits, func(s header.State) bool { return s.Name == w.name }) {
			w.left--
		}
	}
	for _, s := range report.Limits {
		v.see(s, f, now)
	}
	switch {
	case said.Outcome == Denied:
		v.pace(1)
	case len(report.Limits) > 0:
		v.pace(0) // the windows say how many
	case v.width > 0 && said.Outcome == Served:
		v.width++
	}
}

// see keeps what an answer says of one limit, unless more recent answers leave less.
func (v *server) see(s header.State, f flight, now time.Time) {
	w := window{
		name: s.Name, left: s.Remaining, until: now.Add(jittered(s.Within)), sent: v.sent, other: s.Unit != "" && s.Unit != "requests" && s.Unit != "request",
	}
	for _, other := range v.flights {
		if f.at.Sub(other.at) >= settled {
			w.counted = other.number
		}
	}
	i := slices.IndexFunc(v.windows, func(other window) bool { return other.name == w.name })
	switch {
	case i >= 0 && (f.number > v.windows[i].sent || w.left < v.windows[i].left):
		v.windows[i] = w
	case i >= 0:
	case len(v.windows) < mostWindows:
		v.windows = append(v.windows, w)
	default:
		most := slices.MaxFunc(v.windows, func(a, b window) int { return cmp.Compare(a.left, b.left) })
		if w.left < most.left {
			v.windows[slices.Index(v.windows, most)] = w
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jittered returns the wait, longer by up to a tenth, and at most ten seconds.
func jittered(wait time.Duration) time.Duration {
	return wait + rand.N(min(wait/10, 10*time.Second)+1) //nolint:gosec // nothing is secret about it
}
