package pacing

import (
	"slices"

	"github.com/weirlimit/weir/httplimit/header"
)

// A comeback is how requests come back after a pause: as many may be under way as it is wide, of those after the number since. It widens by one for each answer, and is over when
// answers have told of each limit that the pause was for: then their windows say how many may go. What they tell of others says nothing of those.
type comeback struct {
	width int // 0: it is over
	since uint64
	of    []limitName // the limits that are not told of since
	other bool        // the pause was for what nobody has named: it is not over before the next
}

// A limitName is what a server calls a limit.
type limitName struct{ name, partition string }

// begin makes requests come back one by one from the next on, for the limits of a pause, and those of the pause before which are not told of.
func (c *comeback) begin(sent uint64, of ...limitName) {
	c.width, c.since, c.other = 1, sent, len(of) == 0
	for _, name := range of {
		switch {
		case slices.Contains(c.of, name):
		case len(c.of) < mostWindows:
			c.of = append(c.of, name)
		default:
			c.other = true
		}
	}
}

// answered keeps that a request was answered which was sent after the pause, and of which limits that told.
func (c *comeback) answered(served bool, told []limitName) {
	c.of = slices.DeleteFunc(c.of, func(n limitName) bool { return slices.Contains(told, n) })
	switch {
	case len(c.of) == 0 && !c.other:
		c.width = 0
	case served:
		c.width++
	}
}

// causes returns the limits that a denial is of: those of which nothing is left, or else each that it names.
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
