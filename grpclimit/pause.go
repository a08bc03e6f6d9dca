package grpclimit

import (
	"context"
	"time"
)

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
