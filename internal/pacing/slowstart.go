package pacing

import (
	"slices"

	"github.com/weirlimit/weir/httplimit/header"
)

// slowStart limits the requests in flight after a pause, so that a client does not send all waiting
// requests at once. The window starts at 1 and grows by 1 per served response. Slow start ends when
// responses have reported every limit that caused the pause; from then on the reported windows apply.
type slowStart struct {
	window  int         // requests that may be in flight; 0: slow start is over
	after   uint64      // sequence number of the last request before the pause
	pending []limitName // limits that caused the pause and have not been reported since
	unnamed bool        // a cause has no name, or no room in pending; slow start then lasts until the next pause
}

// A limitName is a server's name of a limit.
type limitName struct{ name, partition string }

// begin starts again after the request sent, for the limits that caused a pause. Those of the pause
// before stay pending.
func (c *slowStart) begin(sent uint64, causes ...limitName) {
	c.window, c.after, c.unnamed = 1, sent, len(causes) == 0
	for _, name := range causes {
		switch {
		case slices.Contains(c.pending, name):
		case len(c.pending) < mostWindows:
			c.pending = append(c.pending, name)
		default:
			c.unnamed = true
		}
	}
}

// onResponse records a response to a request sent after the pause. reported are the limits in it.
func (c *slowStart) onResponse(served bool, reported []limitName) {
	c.pending = slices.DeleteFunc(c.pending, func(n limitName) bool { return slices.Contains(reported, n) })
	switch {
	case len(c.pending) == 0 && !c.unnamed:
		c.window = 0
	case served:
		c.window++
	}
}

// causes returns the limits that denied: those with nothing left, or if there are none, all.
func causes(limits []header.State) (used []limitName) {
	var all []limitName
	for _, s := range limits {
		name := limitName{s.Name, s.Partition}
		if all = append(all, name); s.Remaining <= 0 {
			used = append(used, name)
		}
	}
	if len(used) == 0 {
		return all
	}
	return used
}
