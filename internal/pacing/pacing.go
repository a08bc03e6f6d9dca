// Package pacing paces the requests of clients by the reports of servers on their limits. It does not
// send requests.
package pacing

import (
	"context"
	"sync"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

// Servers are the servers that a client knows something of, by the names it calls them. The zero Servers know none. What they keep is bounded, however many names there are.
// They may be used by many goroutines at once.
type Servers struct {
	mu   sync.Mutex
	all  map[string]*server
	sent uint64 // requests that were let go, ever: each has its number
	turn uint64 // requests that came, ever
	most int    // how many servers there may be before those are forgotten that nobody needs
}

// A Ticket is the leave to send one request. It is for one request, which may be sent several times, one after the other.
type Ticket struct {
	name   string
	server *server
	flight flight
	turn   uint64 // when it came, among all that ever came
	waited time.Duration
}

// Waited returns how long a Ticket has waited in line, each time that it entered.
func (t *Ticket) Waited() time.Duration { return t.waited }

// An Outcome is the outcome of a request, as its client sees it.
type Outcome uint8

// The outcomes of requests.
const (
	Failed Outcome = iota // it was not answered, or the server has failed
	Served                // it was answered
	Denied                // it was denied by a limit: 429, RESOURCE_EXHAUSTED
	Busy                  // the server could not for now: 503, UNAVAILABLE
)

// A Response is the report of an answer to a request.
type Response struct {
	Outcome Outcome
	Report  header.Report // its Retry matters if the request was Denied, or the server Busy
}

// Enter waits until a request may be sent to the server of the name. It returns at once, with a *WaitError, if that is further ahead than most, or than the deadline of ctx.
// It is first come, first served: also for a Ticket that has entered before, which keeps its place.
func (s *Servers) Enter(ctx context.Context, name string, most time.Duration, t *Ticket) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.at(name)
	if t.turn == 0 {
		s.turn++
		t.turn = s.turn
	}
	t.name, t.server, v.longest = name, v, max(v.longest, most)
	if len(v.waiters) == 0 && v.open(time.Now()) {
		s.letGo(t)
		return nil
	}
	return s.queue(ctx, most, t)
}

// Leave gives a Ticket back that was not used.
func (s *Servers) Leave(t *Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.server.land(t)
	t.server.stir(1)
	s.tidy(t)
}

// Confirm reports whether a Ticket is still good, after time has passed. If not it is given back.
func (s *Servers) Confirm(t *Ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := t.server
	v.land(t)
	if v.open(time.Now()) {
		s.letGo(t)
		return true
	}
	v.stir(1)
	return false
}

// Answered keeps what the answer to a request says. The request is then under way no longer; of an answer that says more later, as a stream does, Answered is called again.
// It returns until when nothing may be sent, the zero time if something may be. That is what servers said: Enter waits up to a tenth longer, by chance, if there is time.
func (s *Servers) Answered(t *Ticket, response Response) (until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[t.name] != t.server { // it was forgotten since
		t.server = s.at(t.name)
	}
	now, v := time.Now(), t.server
	v.land(t)
	v.expire(now)
	before := v.blocked(now)
	v.learn(response, t.flight, now)
	if until = v.blocked(now); until.After(before) {
		v.stir(len(v.waiters))
	} else {
		v.stir(1)
	}
	s.tidy(t)
	return until
}
