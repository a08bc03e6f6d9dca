package pacing

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// learn keeps what the answer to a request says. A limit of which it is silent did not count the request, or a denial will tell.
func (v *server) learn(said Said, f flight, now time.Time) {
	if said.Report.Retry && (said.Outcome == Denied || said.Outcome == Busy) {
		// Retry-After wins over what the limits say, of this answer and of those before.
		v.windows = nil
		v.pace(1)
		if wait := said.Report.RetryAfter; wait > 0 {
			if p := newPause(wait, now); v.end(p).After(v.end(v.pause)) {
				v.pause = p
			}
		}
		return
	}
	told := false
	for _, s := range said.Report.Limits {
		if s.Within > 0 && s.Unit != "concurrent-requests" {
			v.see(s, f, now)
			told = true
		}
	}
	switch {
	case said.Outcome == Denied:
		v.pace(1)
	case f.number <= v.paused: // sent before the pause: it says nothing of what is after it
	case told:
		v.pace(0) // the windows say how many
	case v.width > 0 && said.Outcome == Served:
		v.width++
	}
}

// see keeps what an answer says of one limit, unless more recent answers leave less.
func (v *server) see(s header.State, f flight, now time.Time) {
	w := window{
		name: s.Name, partition: s.Partition, left: s.Remaining, pause: newPause(s.Within, now), sent: v.sent,
		other: s.Unit != "" && s.Unit != "requests" && s.Unit != "request",
	}
	for _, other := range v.flights {
		if f.at.Sub(other.at) >= settled {
			w.counted = other.number
		}
	}
	i := slices.IndexFunc(v.windows, func(other window) bool { return other.name == w.name && other.partition == w.partition })
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
