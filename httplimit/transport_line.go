package httplimit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// origins are the servers that a Transport knows something of.
type origins struct {
	mu    sync.Mutex
	all   map[string]*origin
	turns uint64
	most  int // how many there may be before those are forgotten that nobody needs
}

// mostOrigins is how many servers are kept of those to which nothing is under way.
const mostOrigins = 4096

// A ticket is the leave to send one request.
type ticket struct {
	name   string
	origin *origin
	flight flight
	turn   uint64 // when it came, among all that ever came
}

// A waiter waits for a ticket.
type waiter struct {
	turn  uint64
	again chan struct{} // has a signal when it should look again
}

// enter waits until a request may be sent to the server. It returns at once, with a *WaitError, if that is too far ahead.
func (os *origins) enter(ctx context.Context, name string, most time.Duration, t *ticket) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	os.mu.Lock()
	defer os.mu.Unlock()
	o := os.at(name)
	if t.turn == 0 {
		os.turns++
		t.turn = os.turns
	}
	t.name, t.origin = name, o
	if len(o.waiters) == 0 && o.open(time.Now()) {
		o.letGo(t)
		return nil
	}
	return os.queue(ctx, o, most, t)
}

// queue waits in line. The mutex is held, but not while it waits.
func (os *origins) queue(ctx context.Context, o *origin, most time.Duration, t *ticket) error {
	w := &waiter{turn: t.turn, again: make(chan struct{}, 1)}
	place, _ := slices.BinarySearchFunc(o.waiters, w.turn, func(w *waiter, turn uint64) int {
		if w.turn < turn {
			return -1
		}
		return 1
	})
	o.waiters = slices.Insert(o.waiters, place, w)
	patience := time.NewTimer(most)
	defer patience.Stop()
	for {
		now := time.Now()
		if o.waiters[0] == w && o.open(now) {
			o.forget(w)
			o.letGo(t)
			return nil
		}
		until := o.blocked(now)
		err := tooLong(ctx, until.Sub(now), most)
		if o.waiters[0] != w {
			until = time.Time{} // who is first looks then, and tells the next
		}
		if err == nil {
			err = os.wait(ctx, w, until, patience, most)
		}
		if err != nil {
			o.forget(w)
			os.tidy(t)
			return err
		}
	}
}

// wait gives the mutex up, and waits until there is something to look at: a signal, or the time, if there is one.
func (os *origins) wait(ctx context.Context, w *waiter, until time.Time, patience *time.Timer, most time.Duration) error {
	os.mu.Unlock()
	defer os.mu.Lock()
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
		return &WaitError{Most: most}
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// letGo counts a request as under way.
func (o *origin) letGo(t *ticket) {
	o.sent++
	t.flight = flight{o.sent, time.Now()}
	o.flights = append(o.flights, t.flight)
	o.stir(1)
}

// land counts a request as no longer under way.
func (o *origin) land(t *ticket) {
	o.flights = slices.DeleteFunc(o.flights, func(f flight) bool { return f.number == t.flight.number })
}

// forget takes a waiter out of the line.
func (o *origin) forget(w *waiter) {
	if i := slices.Index(o.waiters, w); i >= 0 {
		o.waiters = slices.Delete(o.waiters, i, i+1)
	}
	o.stir(1)
}

// stir makes the first n who wait look again: the first may go, and others may find that they would wait too long.
func (o *origin) stir(n int) {
	for _, w := range o.waiters[:min(n, len(o.waiters))] {
		select {
		case w.again <- struct{}{}:
		default:
		}
	}
}

// leave gives a ticket back that was not used.
func (os *origins) leave(t *ticket) {
	os.mu.Lock()
	defer os.mu.Unlock()
	t.origin.land(t)
	t.origin.stir(1)
	os.tidy(t)
}

// confirm reports whether a ticket is still good, after time has passed. If not it is given back.
func (os *origins) confirm(t *ticket) bool {
	os.mu.Lock()
	defer os.mu.Unlock()
	o := t.origin
	o.land(t)
	if o.open(time.Now()) {
		o.letGo(t)
		return true
	}
	o.stir(1)
	return false
}

// answered keeps what the answer to a request says; status 0 is no answer. It returns until when nothing may be sent, the zero time if something may be.
func (os *origins) answered(t *ticket, status int, report header.Report) (until time.Time) {
	os.mu.Lock()
	defer os.mu.Unlock()
	now, o := time.Now(), t.origin
	o.land(t)
	o.expire(now)
	before := o.blocked(now)
	o.learn(status, report, t.flight, now)
	if until = o.blocked(now); until.After(before) {
		o.stir(len(o.waiters))
	} else {
		o.stir(1)
	}
	os.tidy(t)
	return until
}

// at returns the server of the name, which it makes if there is none.
func (os *origins) at(name string) *origin {
	o := os.all[name]
	if o == nil {
		os.makeRoom()
		o = &origin{}
		os.all[name] = o
	}
	return o
}

// tidy forgets a server of which nothing is to be remembered.
func (os *origins) tidy(t *ticket) {
	if t.origin.idle(time.Now()) {
		delete(os.all, t.name)
	}
}

// makeRoom forgets, when there are too many, the servers of which nothing is to be remembered; if that is not enough, others to which nothing is under way.
func (os *origins) makeRoom() {
	if len(os.all) < max(os.most, mostOrigins) {
		return
	}
	now := time.Now()
	for name, o := range os.all {
		if o.idle(now) {
			delete(os.all, name)
		}
	}
	for name, o := range os.all {
		if len(os.all) < mostOrigins*7/8 {
			break
		}
		if len(o.flights) == 0 && len(o.waiters) == 0 {
			delete(os.all, name)
		}
	}
	os.most = 2 * len(os.all)
}
