package pacing

import (
	"context"
	"fmt"
	"time"
)

// A WaitError reports a request that was not sent, because the server had said that it should not be before a time that is too far ahead.
type WaitError struct {
	Until time.Time     // when it may be sent; the zero time if that is not known
	Wait  time.Duration // how long that is; 0 if it is not known: no turn came in the time that it could wait
	Most  time.Duration // how long it could have waited: what was left of the longest wait that the client allows, or until the deadline of its context
	// Deadline says that the deadline was sooner: the error is context.DeadlineExceeded.
	Deadline bool
}

// Error implements error.
func (e *WaitError) Error() string {
	switch {
	case e.Wait == 0:
		return fmt.Sprintf("pacing: no turn came in %v, which was left of MaxWait: others were before, or are under way and not answered", e.Most)
	case e.Deadline:
		return fmt.Sprintf("pacing: the server asked to wait %v more, and the deadline is in %v", e.Wait, e.Most)
	}
	return fmt.Sprintf("pacing: the server asked to wait %v more; accepted: up to %v, which is left of MaxWait", e.Wait, e.Most)
}

// Unwrap returns context.DeadlineExceeded if that is why the request could not wait.
func (e *WaitError) Unwrap() error {
	if e.Deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// TooLong returns a *WaitError if the wait would outlast the deadline of ctx, or the longest wait, and nil if it is short enough.
func TooLong(ctx context.Context, wait, most time.Duration) error {
	if wait <= 0 {
		return nil
	}
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok && wait > deadline.Sub(now) {
		return &WaitError{Until: now.Add(wait), Wait: wait, Most: deadline.Sub(now), Deadline: true}
	}
	if wait > most {
		return &WaitError{Until: now.Add(wait), Wait: wait, Most: most}
	}
	return nil
}
