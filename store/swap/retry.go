package swap

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	shortestAttempt = 100 * time.Microsecond
	// mostDoublings is small: with longer pauses, requests that have lost lose to new ones, and a few
	// wait for very long.
	mostDoublings = 2
)

// pause waits before the next attempt: for a random part of the duration of the last one, of twice
// that after two lost swaps, and of four times that after more. For each lost swap another one
// succeeded, so it is enough to thin them out.
func pause(ctx context.Context, lost int, attempt time.Duration) error {
	most := max(attempt, shortestAttempt) << min(lost, mostDoublings)
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
