package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/store"
)

// ErrNothingDone is in errors of operations that certainly took no effect: [store.ErrNothingDone]. An error of an Engine that has it is
// taken at its word; of the others the effect is unknown, except of a Load.
var ErrNothingDone = store.ErrNothingDone

// ErrClosed is the error of operations on a store that was closed.
var ErrClosed = fmt.Errorf("weir: the store is closed: %w", ErrNothingDone)

// errUnknown is in errors of operations that may have taken effect.
var errUnknown = errors.New("whether anything was changed is unknown")

// errGivenUp marks calls that were dropped before they changed anything.
var errGivenUp = errors.New("given up")

// givenUp is the error of an operation whose caller has given up, or whose time has run out.
func givenUp(caller context.Context, timeout time.Duration, effect error) error {
	switch err := caller.Err(); {
	case err != nil && store.TimedOut(caller):
		return fmt.Errorf("weir: %w; %w", context.Cause(caller), effect)
	case err != nil:
		return fmt.Errorf("weir: the caller gave up: %w; %w", err, effect)
	}
	return fmt.Errorf("weir: no answer within %v: %w; %w", timeout, context.DeadlineExceeded, effect)
}

// unknown adds to an error of the engine that the operation may have taken effect, unless it says that it has not.
func unknown(err error) error {
	if err == nil || errors.Is(err, ErrNothingDone) {
		return err
	}
	return fmt.Errorf("%w; %w", err, errUnknown)
}
