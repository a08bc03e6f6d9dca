package pacing

import (
	"cmp"
	"slices"
	"time"
)

// A server has the reports of a server, the requests in flight to it, and the waiters.
type server struct {
	waiters []*waiter // in the order in which they came
	flights []flight  // requests that were let go and are not answered, in order
	sent    uint64    // the number of the last that was let go; when it was made, of the last that was let go to any server

	longest time.Duration // the longest pause that is kept
	pause   pause         // of Retry-After
	windows []window      // of RateLimit, each name once
	back    slowStart     // after the pause before
}

// A flight is a request that is under way.
type flight struct {
	number uint64
	at     time.Time // when it was sent
}

// A window is the last report of a server on one limit.
type window struct {
	limitName
	left    int64  // as in the last report
	pause   pause  // how long that is so
	sent    uint64 // sequence number of the last request before the report
	counted uint64 // flights up to this number are sure to be counted in left; others may not be
	other   bool   // left counts something other than requests: it matters only when it is 0
}

// settled is how long after one request another has to be sent to be counted after it by the server, for all that networks do. It is also how long a request
// that is not answered holds back those that come after a pause: it may be one that takes long, as to wait for news.
const settled = 2 * time.Second

// mostWindows is how many limits of a server are kept: those that leave the least.
const mostWindows = 16

// after returns the requests that are under way whose number is higher.
func (v *server) after(number uint64) []flight {
	i, _ := slices.BinarySearchFunc(v.flights, number+1, func(f flight, n uint64) int { return cmp.Compare(f.number, n) })
	return v.flights[i:]
}

// used reports whether nothing is left of a window.
func (v *server) used(w window) bool {
	return w.left <= 0 || !w.other && w.left <= int64(len(v.after(w.counted)))
}

// opens returns from when on one more request may be sent if nothing is answered before; that is not after now if one may be.
func (v *server) opens(now time.Time) time.Time {
	v.expire(now)
	at := v.end(v.pause)
	if after, window := v.after(v.back.after), v.back.window; window > 0 && len(after) >= window {
		at = later(at, after[len(after)-window].at.Add(settled))
	}
	for _, w := range v.windows {
		if v.used(w) {
			at = later(at, v.end(w.pause))
		}
	}
	return at
}

// open reports whether one more request may be sent.
func (v *server) open(now time.Time) bool { return !v.opens(now).After(now) }

// expire forgets the windows that are over. If one was used up, its requests come back one by one.
func (v *server) expire(now time.Time) {
	v.windows = slices.DeleteFunc(v.windows, func(w window) bool {
		used := v.used(w)
		over := !w.pause.full().After(now) || used && !v.end(w.pause).After(now)
		if over && used {
			v.back.begin(v.sent, w.limitName)
		}
		return over
	})
}

// idle reports whether the server holds nobody back, and nothing is under way to it.
func (v *server) idle(now time.Time) bool {
	v.expire(now)
	return len(v.flights) == 0 && len(v.waiters) == 0 && len(v.windows) == 0 && !v.end(v.pause).After(now)
}
