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
		v.back.begin(v.sent, causes(said.Report.Limits)...)
		if wait := said.Report.RetryAfter; wait > 0 {
			if p := newPause(wait, now); v.end(p).After(v.end(v.pause)) {
				v.pause = p
			}
		}
		return
	}
	var told []limitName
	for _, s := range said.Report.Limits {
		if s.Within > 0 && s.Unit != "concurrent-requests" {
			v.see(s, f, now)
			told = append(told, limitName{s.Name, s.Partition})
		}
	}
	switch {
	case said.Outcome == Denied:
		v.back.begin(v.sent, causes(said.Report.Limits)...)
	case v.back.width > 0 && f.number > v.back.since: // sent before the pause, it would say nothing of what is after it
		v.back.answered(said.Outcome == Served, told)
	}
}

// see keeps what an answer says of one limit, unless more recent answers leave less.
func (v *server) see(s header.State, f flight, now time.Time) {
	w := window{
		limitName: limitName{s.Name, s.Partition}, left: s.Remaining, pause: newPause(s.Within, now), sent: v.sent,
		other: s.Unit != "" && s.Unit != "requests" && s.Unit != "request",
	}
	for _, other := range v.flights {
		if f.at.Sub(other.at) >= settled {
			w.counted = other.number
		}
	}
	i := slices.IndexFunc(v.windows, func(other window) bool { return other.limitName == w.limitName })
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
