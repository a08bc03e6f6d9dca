package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store/swap"
)

const (
	// defaultLost is how many swaps a flight may lose before its joints are taken in turn.
	defaultLost = 12
	// A flight that lost pauses for up to the time that it took, and longer each time up to so many doublings.
	mostDoublings   = 2
	shortestAttempt = 100 * time.Microsecond
)

// A flight carries joints to the server, all that share a name with another of them.
type flight struct {
	gathering *gathering
	joints    []*joint
	names     []string // in order
	index     map[string]int
}

// take takes joints into the flight.
func (f *flight) take(going map[string]*flight, joints ...*joint) {
	f.joints = append(f.joints, joints...)
	for _, j := range joints {
		j.waits = false
		for _, p := range j.parts {
			going[p.name] = f
		}
	}
}

// begin sets off, with the gathering locked.
func (f *flight) begin() {
	for _, j := range f.joints {
		for _, p := range j.parts {
			f.names = append(f.names, p.name)
			f.gathering.busy[p.name] = true
		}
	}
	slices.Sort(f.names) // those who insert lock in this order
	f.names = slices.Compact(f.names)
	f.index = make(map[string]int, len(f.names))
	for i, name := range f.names {
		f.index[name] = i
	}
	f.gathering.flights.Go(f.run)
}

// run answers all joints. A panic is an error of all of them, which await raises again. It has a
// context of its own, because a caller's context ends with the caller, while further joints go on.
func (f *flight) run() {
	defer f.gathering.end(f)
	end := f.joints[0].end
	for _, j := range f.joints {
		if j.end.After(end) {
			end = j.end
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	err := panics.Catch(func() error { return f.swap(ctx) })
	for _, j := range f.joints {
		if j.err != nil { // it alone was refused
			err := j.err
			j.answer(err)
			continue
		}
		j.answer(err)
	}
}

// swap loads, decides and swaps, again and again until nobody came between, or too often.
func (f *flight) swap(ctx context.Context) error {
	e := f.gathering.engine
	for lost := 0; ; lost++ {
		f.dropGivenUp()
		if len(f.joints) == 0 {
			return nil
		}
		began := time.Now()
		swapped, err := f.try(ctx)
		if swapped || err != nil {
			return err
		}
		e.conflicts.Add(1)
		if lost+1 >= f.gathering.mostLost || !pause(ctx, lost, time.Since(began)) {
			return errBusy
		}
	}
}

// dropGivenUp takes the joints out that nobody waits for. It is for when they have changed nothing.
func (f *flight) dropGivenUp() {
	f.joints = slices.DeleteFunc(f.joints, func(j *joint) bool {
		if j.ended() == nil {
			return false
		}
		j.answer(errGivenUp)
		return true
	})
}

// try loads, decides and swaps once. The answers of the joints count only if it succeeds.
func (f *flight) try(ctx context.Context) (swapped bool, err error) {
	e := f.gathering.engine
	cells, err := e.loadAll(ctx, f.names)
	if err != nil {
		return false, undone(unsent{err})
	}
	if f.dropGivenUp(); len(f.joints) == 0 {
		return true, nil
	}
	entries := make([]*entry, len(f.names))
	for _, j := range f.joints {
		mine := make([]*entry, len(j.parts))
		for i, p := range j.parts {
			n := f.index[p.name]
			if entries[n] == nil {
				entries[n] = newEntry(cells[n], p, e.heals)
			}
			mine[i] = entries[n]
		}
		j.err = j.decide(mine, cells[0].Now)
	}
	var changes []change
	healed := int64(0)
	for i, entry := range entries {
		if entry == nil { // of who has given up
			continue
		}
		if c, changed := entry.change(e.grace); changed {
			c.name = f.names[i]
			changes = append(changes, c)
			if entry.healed {
				healed++
			}
		}
	}
	if len(changes) == 0 {
		return true, nil
	}
	if swapped, err = e.swapAll(ctx, changes); swapped {
		e.healed.Add(healed)
	}
	return swapped, err
}

// pause waits before the next attempt, and reports whether there is time for one.
func pause(ctx context.Context, lost int, attempt time.Duration) bool {
	timer := time.NewTimer(rand.N(max(attempt, shortestAttempt) << min(lost, mostDoublings))) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A change is a record that replaces another, whose life is from now on.
type change struct {
	name      string
	old, next swap.Record
	life      time.Duration
}
