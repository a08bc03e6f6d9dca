package algorithm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Records of layouts before this one may have the states of up to three previous limits, which were charged with all units too.
// Their heads have them as was=limit|units|until|state.

// maxPrevious is how many previous limits a record may have.
const maxPrevious = 3

// A previous is the state of a limit that the name had before, until a time.
type previous struct {
	program *Program
	state   []int64
	until   int64
}

// settled returns a record without previous limits: that of the limit under which most units are used, so that none are forgotten.
// Where the record has leases it stays as it is, because it has the ends of all.
func (a Account) settled(now int64) Account {
	if len(a.Extra.previous) == 0 {
		return a
	}
	x := *a.Extra
	x.previous = nil
	most := a.Program.used(a.State, now)
	for _, old := range a.Extra.previous {
		if m, ok := old.program.machine.(concurrent); ok && a.Program.leases() {
			x.Lease = max(x.Lease, m.width)
			continue
		}
		if n := old.program.used(old.state, now); n > most && old.until > now && x.Owed <= old.program.mostOwed() {
			a.Program, a.State, most = old.program, slices.Clone(old.state), n
		}
	}
	a.Extra = &x
	return a
}

// used returns how many units are used, rounded up.
func (p *Program) used(state []int64, now int64) int64 {
	_, d := p.machine.take(state, 0, now)
	return p.capacity - d.Remaining
}

func (p *Program) readPrevious(text string) (old previous, err error) {
	words := strings.Split(text, "|")
	if len(words) != 4 {
		return old, fmt.Errorf("was is %.100q; accepted: a limit, units, a time, and a state, apart by |", text)
	}
	if old.program, err = p.sibling(words[0]); err != nil {
		return old, err
	}
	var units int64 // that were given back to another limit first
	if err = errors.Join(readInts(words[1], &units), readInts(words[2], &old.until)); err != nil || units < 0 || !p.reaches(old.until) {
		return old, fmt.Errorf("was is %.100q; accepted: 0 or more units, and a time", text)
	}
	if words[3] == "" {
		return old, nil
	}
	old.state = make([]int64, 1+strings.Count(words[3], ","))
	to := make([]*int64, len(old.state))
	for i := range to {
		to[i] = &old.state[i]
	}
	if err = readInts(words[3], to...); err == nil {
		err = old.program.Check(old.state)
	}
	return old, err
}
