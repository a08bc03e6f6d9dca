package pacing

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A waiter waits for a Ticket.
type waiter struct {
	turn  uint64
	again chan struct{} // has a signal when it should look again
}

// queue waits in line. The mutex is held, but not while it waits.
func (s *Servers) queue(ctx context.Context, most time.Duration, t *Ticket) error {
	v, w := t.server, &waiter{turn: t.turn, again: make(chan struct{}, 1)}
	place, _ := slices.BinarySearchFunc(v.waiters, w.turn, func(w *waiter, turn uint64) int { return cmp.Compare(w.turn, turn) })
	v.waiters = slices.Insert(v.waiters, place, w)
	now := time.Now()
	last, patience := now.Add(most), time.NewTimer(most)
	defer func(start time.Time) {
		patience.Stop()
		t.waited += time.Since(start)
	}(now)
	for ; ; now = time.Now() {
		err := TooLong(ctx, v.blocked(now).Sub(now), last.Sub(now))
		if err == nil {
			v.hurry(ctx, now, last)
		}
		look := v.opens(now)
		first := v.waiters[0] == w
		if first && !look.After(now) {
			v.forget(w)
			s.letGo(t)
			return nil
		}
		if err == nil && !last.After(now) {
			err = &WaitError{Most: most}
		}
		if !first {
			look = time.Time{} // who is first looks then, and tells the next
		}
		if err == nil {
			err = s.wait(ctx, w, look, patience)
		}
		if err != nil {
			v.forget(w)
			s.tidy(t)
			return err
		}
	}
}

// wait gives the mutex up, and waits until there is something to look at: a signal, the time, if there is one, or the end of its patience.
func (s *Servers) wait(ctx context.Context, w *waiter, until time.Time, patience *time.Timer) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	var reached <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		reached = timer.C
	}
	select {
	case <-w.again:
	case <-reached:
	case <-patience.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// letGo counts a request as under way.
func (s *Servers) letGo(t *Ticket) {
	s.sent++
	v := t.server
	v.sent, t.flight = s.sent, flight{s.sent, time.Now()}
	v.flights = append(v.flights, t.flight)
	v.stir(1)
}

// land counts a request as no longer under way.
func (v *server) land(t *Ticket) {
	v.flights = slices.DeleteFunc(v.flights, func(f flight) bool { return f.number == t.flight.number })
}

// forget takes a waiter out of the line.
func (v *server) forget(w *waiter) {
	if i := slices.Index(v.waiters, w); i >= 0 {
		v.waiters = slices.Delete(v.waiters, i, i+1)
	}
	v.stir(1)
}

// stir makes the first n who wait look again: the first may go, and others may find that they would wait too long.
func (v *server) stir(n int) {
	for _, w := range v.waiters[:min(n, len(v.waiters))] {
		select {
		case w.again <- struct{}{}:
		default:
		}
	}
}
