package grpclimit

import (
	"context"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// A message that waits asks again when there may be room for it, and every so often before, because limits change, and others give back what they have taken.
const (
	askAgain   = time.Second
	askForSoon = 10 * time.Millisecond // what others hold may be given back at any time: first after so long, and then after twice as long each time
)

// admit lets a message pass, waits until it may, or refuses it and so the rest of the stream.
func (st *stream) admit(c *call) error {
	until := time.Now().Add(st.server.opts.MaxWait)
	for soon := askForSoon; ; soon = min(2*soon, askAgain) {
		a, refused := st.server.admit(c)
		switch {
		case refused == nil:
			st.hold(a)
			if a.Await(st.ctx) != nil {
				return st.refuse(gone(st.ctx))
			}
			return nil
		case waitsForRoom(st.ctx, a, soon, time.Until(until)):
		case st.ctx.Err() != nil:
			return st.refuse(gone(st.ctx))
		default:
			st.SetTrailer(pushback(a))
			return st.refuse(refused)
		}
	}
}

// waitsForRoom returns when a message that was denied is to ask again. It returns false at once if there would be no room for it in the time that is left, or if ctx ends.
func waitsForRoom(ctx context.Context, a *admission.Admission, soon, left time.Duration) bool {
	if a.Outcome != admission.Denied || left <= 0 {
		return false
	}
	if forPlaces(a) {
		return pause(ctx, min(soon, left))
	}
	room := a.Decision.RetryAfter
	return room <= left && !tooLate(ctx, room) && pause(ctx, min(room, askAgain))
}

// forPlaces reports whether what denied are concurrent limits alone: nobody knows when there is room.
func forPlaces(a *admission.Admission) bool {
	for s := range a.Each() {
		if !s.Decision.Allowed && s.Limit.Algorithm != weir.Concurrent {
			return false
		}
	}
	return true
}

// pause waits for a time. It returns false if ctx ends first, and at once if its deadline is sooner.
func pause(ctx context.Context, wait time.Duration) bool {
	if tooLate(ctx, wait) {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && wait > time.Until(deadline)
}

func (st *stream) refuse(err error) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.refused = err
	return err
}

func (st *stream) refusal() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.refused
}

func (st *stream) hold(a *admission.Admission) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.held = a
}

// release gives back what a message holds that has been worked on.
func (st *stream) release() {
	st.mu.Lock()
	a := st.held
	st.held = nil
	st.mu.Unlock()
	if a != nil {
		a.Finish(admission.Response{})
	}
}
