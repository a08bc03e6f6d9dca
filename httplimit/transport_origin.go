package httplimit

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// An origin is what is known of a server: what it said, what is under way to it, and who waits.
type origin struct {
	waiters []*waiter // in the order in which they came
	flights []flight  // requests that were let go and are not answered, in order
	sent    uint64    // requests that were let go, ever: each has its number

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
func (o *origin) after(number uint64) int {
	i, _ := slices.BinarySearchFunc(o.flights, number+1, func(f flight, n uint64) int { return cmp.Compare(f.number, n) })
	return len(o.flights) - i
}

// used reports whether nothing is left of a window.
func (o *origin) used(w window) bool {
	return w.left <= 0 || !w.other && w.left <= int64(o.after(w.counted))
}

// pace makes requests go one by one from now on, or if width is 0, no longer.
func (o *origin) pace(width int) {
	o.width, o.paused = width, o.sent
}

// mostWindows is how many limits of a server are kept: those that leave the least.
const mostWindows = 16

// originOf returns scheme, host and port.
func originOf(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	port := r.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[r.URL.Scheme]
	}
	return r.URL.Scheme + "://" + strings.ToLower(r.URL.Hostname()) + ":" + port
}

// blocked returns until when nothing may be sent, the zero time if something may be.
func (o *origin) blocked(now time.Time) (until time.Time) {
	if o.notBefore.After(now) {
		until = o.notBefore
	}
	for _, w := range o.windows {
		if w.left <= 0 && w.until.After(now) && w.until.After(until) {
			until = w.until
		}
	}
	return until
}

// open reports whether one more request may be sent.
func (o *origin) open(now time.Time) bool {
	o.expire(now)
	if o.notBefore.After(now) || o.width > 0 && o.after(o.paused) >= o.width {
		return false
	}
	return !slices.ContainsFunc(o.windows, o.used)
}

// expire forgets the windows that are over. If one was used up, its requests come back one by one.
func (o *origin) expire(now time.Time) {
	o.windows = slices.DeleteFunc(o.windows, func(w window) bool {
		over := !w.until.After(now)
		if over && o.used(w) {
			o.pace(1)
		}
		return over
	})
}

// idle reports whether the origin is as one that was never asked.
func (o *origin) idle(now time.Time) bool {
	o.expire(now)
	return len(o.flights) == 0 && len(o.waiters) == 0 && len(o.windows) == 0 && !o.notBefore.After(now)
}

// learn keeps what the answer to a request says.
func (o *origin) learn(status int, report header.Report, f flight, now time.Time) {
	if report.Retry && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		// Retry-After wins over what the limits say, of this answer and of those before.
		o.windows = nil
		o.pace(1)
		if report.RetryAfter > 0 {
			o.notBefore = later(o.notBefore, now.Add(jittered(report.RetryAfter)))
		}
		return
	}
	report.Limits = slices.DeleteFunc(report.Limits, func(s header.State) bool { return s.Within <= 0 || s.Unit == "concurrent-requests" })
	for i := range o.windows { // what the answer is silent on may have counted it too
		if w := &o.windows[i]; !slices.ContainsFunc(report.Limits, func(s header.State) bool { return s.Name == w.name }) {
			w.left--
		}
	}
	for _, s := range report.Limits {
		o.see(s, f, now)
	}
	switch {
	case status == http.StatusTooManyRequests:
		o.pace(1)
	case len(report.Limits) > 0:
		o.pace(0) // the windows say how many
	case o.width > 0 && status > 0 && status < http.StatusInternalServerError:
		o.width++
	}
}

// see keeps what an answer says of one limit, unless more recent answers leave less.
func (o *origin) see(s header.State, f flight, now time.Time) {
	w := window{
		name: s.Name, left: s.Remaining, until: now.Add(jittered(s.Within)), sent: o.sent, other: s.Unit != "" && s.Unit != "requests" && s.Unit != "request",
	}
	for _, other := range o.flights {
		if f.at.Sub(other.at) >= settled {
			w.counted = other.number
		}
	}
	i := slices.IndexFunc(o.windows, func(other window) bool { return other.name == w.name })
	switch {
	case i >= 0 && (f.number > o.windows[i].sent || w.left < o.windows[i].left):
		o.windows[i] = w
	case i >= 0:
	case len(o.windows) < mostWindows:
		o.windows = append(o.windows, w)
	default:
		most := slices.MaxFunc(o.windows, func(a, b window) int { return cmp.Compare(a.left, b.left) })
		if w.left < most.left {
			o.windows[slices.Index(o.windows, most)] = w
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
