package swap

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNothingDone is in errors of operations that certainly took no effect. Of the others it is unknown.
var ErrNothingDone = errors.New("nothing was changed")

// ErrClosed is the error of operations on a store that was closed.
var ErrClosed = fmt.Errorf("weir: the store is closed: %w", ErrNothingDone)

// errUnknown is in errors of operations that may have taken effect.
var errUnknown = errors.New("whether anything was changed is unknown")

// errGivenUp marks calls that were dropped before they changed anything.
var errGivenUp = errors.New("given up")

// givenUp is the error of an operation whose caller has given up, or whose time has run out.
func givenUp(caller context.Context, timeout time.Duration, effect error) error {
	if err := caller.Err(); err != nil {
		return fmt.Errorf("weir: the caller gave up: %w; %w", err, effect)
	}
	return fmt.Errorf("weir: no answer within %v: %w; %w", timeout, context.DeadlineExceeded, effect)
}
