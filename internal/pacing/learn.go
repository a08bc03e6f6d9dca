package pacing

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// learn records a response. A limit that it does not report did not count the request, or will deny.
func (v *server) learn(response Response, f flight, now time.Time) {
	if response.Report.Retry && (response.Outcome == Denied || response.Outcome == Busy) {
		// Retry-After wins over what the limits say, of this answer and of those before.
		v.windows = nil
		v.back.begin(v.sent, causes(response.Report.Limits)...)
		if wait := response.Report.RetryAfter; wait > 0 {
			if p := newPause(wait, now); v.end(p).After(v.end(v.pause)) {
				v.pause = p
			}
		}
		return
	}
	var reported []limitName
	for _, s := range response.Report.Limits {
		if s.Within > 0 && s.Unit != "concurrent-requests" {
			v.see(s, f, now)
			reported = append(reported, limitName{s.Name, s.Partition})
		}
	}
	switch {
	case response.Outcome == Denied:
		v.back.begin(v.sent, causes(response.Report.Limits)...)
	case v.back.window > 0 && f.number > v.back.after: // a request from before the pause reports nothing of the time after it
		v.back.onResponse(response.Outcome == Served, reported)
	}
}

// see records the window of one limit, unless more recent responses leave less.
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
