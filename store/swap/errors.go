package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirlimit/weir/store"
)

// ErrNothingDone is in errors of operations that certainly took no effect: [store.ErrNothingDone]. An
// Engine may return it. After its other errors the effect is unknown, except of a Load.
var ErrNothingDone = store.ErrNothingDone

// ErrClosed is the error of operations on a store that was closed.
var ErrClosed = fmt.Errorf("weir: the store is closed: %w", ErrNothingDone)

// errUnknown is in errors of operations that may have taken effect.
var errUnknown = errors.New("whether anything was changed is unknown")

// errGivenUp marks requests that were dropped before they changed anything.
var errGivenUp = errors.New("given up")

// errBusy marks joint takes that lost too many swaps.
var errBusy = errors.New("busy")

// givenUp returns the error of a request whose caller has given up, or whose time is over.
func (s *Store) givenUp(caller context.Context, effect error) error {
	switch err := caller.Err(); {
	case err != nil && store.TimedOut(caller):
		return fmt.Errorf("%s: %w; %w", s.options.Engine, context.Cause(caller), effect)
	case err != nil:
		return fmt.Errorf("%s: the caller gave up: %w; %w", s.options.Engine, err, effect)
	}
	return fmt.Errorf("%s: no answer within %v: %w; %w", s.options.Engine, s.options.Timeout, context.DeadlineExceeded, effect)
}

// foreign returns the error of a request on a stored value that is no record.
func (s *Store) foreign(name string, reason error) error {
	return fmt.Errorf("%s: %w; accepted: what weir writes, or no value; a reset of the key forgets it; %w",
		s.options.Engine, &store.KeyError{Key: name, Err: reason}, ErrNothingDone)
}

// nothingDone adds to an error that the request took no effect.
func nothingDone(err error) error {
	if err == nil || errors.Is(err, ErrNothingDone) {
		return err
	}
	return fmt.Errorf("%w; %w", err, ErrNothingDone)
}

// unknown adds to an error that the request may have taken effect, unless it states the contrary.
func unknown(err error) error {
	if err == nil || errors.Is(err, ErrNothingDone) {
		return err
	}
	return fmt.Errorf("%w; %w", err, errUnknown)
}

// A partialError is that of several requests, some of which were carried out before one failed.
type partialError struct {
	done  string
	cause error
}

// effects are the statements about one request, which are not true of several.
var effects = strings.NewReplacer("; "+ErrNothingDone.Error(), "", "; "+errUnknown.Error(), "")

// Error leaves out the effect of the request that failed.
func (e *partialError) Error() string {
	return "weir: " + e.done + ": " + effects.Replace(e.cause.Error())
}

// Is reports true for the errors in the cause, except ErrNothingDone.
func (e *partialError) Is(target error) bool {
	return target != ErrNothingDone && errors.Is(e.cause, target)
}

// As finds the errors in the cause.
func (e *partialError) As(target any) bool { return errors.As(e.cause, target) }
