package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// OnError is the decision on requests while the store fails: Deny, Allow, Local, or a [LocalShare].
// The zero value is Deny.
type OnError int32

const (
	// Deny decides nothing: an operation returns the error of the store.
	Deny OnError = 0
	// Allow allows all requests (fail open).
	Allow OnError = -1
	// Local enforces the limit in the memory of the process, which counts only the requests of this
	// process during the failure. Several processes admit together a multiple of the limit: see
	// LocalShare.
	Local OnError = wholeShare
)

// A share is stored in millionths, and a share that is no share as badShare.
const (
	wholeShare = 1_000_000
	badShare   = -2
)

// OnErrorAccepted is what ParseOnError accepts, in words.
const OnErrorAccepted = "deny, allow, local, or local with a share of the limit, such as local 25%"

const shareAccepted = "a share of 0.000001 to 1"

// LocalShare returns Local with a share of the limit for this process: more than 0, up to 1,
// rounded down to millionths. With a share of 1/n, n processes admit together at most the bound of
// the limit. [OnError.Limit] returns an error for any other share.
func LocalShare(share float64) OnError {
	millionths := share*wholeShare + 1e-4 // 0.29 is a bit less than 290,000 millionths
	if !(1 <= millionths && share <= 1) { // also for NaN
		return badShare
	}
	return OnError(millionths)
}

var localShare = regexp.MustCompile(`^local (0|[1-9][0-9]{0,2})(?:\.([0-9]{1,4}))?%$`)

// ParseOnError reads the text of an OnError: deny, allow, local, or local with a share of the limit
// in percent, such as local 25% or local 33.3333%.
func ParseOnError(text string) (OnError, error) {
	switch text {
	case "deny":
		return Deny, nil
	case "allow":
		return Allow, nil
	case "local":
		return Local, nil
	}
	if m := localShare.FindStringSubmatch(text); m != nil {
		digits := m[1] + m[2] + strings.Repeat("0", 4-len(m[2])) // millionths, at most 7 digits
		if n, err := strconv.Atoi(digits); err == nil && 0 < n && n <= wholeShare {
			return OnError(n), nil
		}
	}
	return Deny, fmt.Errorf("weir: the decision while the store fails is %.50q; accepted: %s", text, OnErrorAccepted)
}

// String returns the text that ParseOnError reads.
func (o OnError) String() string {
	switch {
	case o == Deny:
		return "deny"
	case o == Allow:
		return "allow"
	case o == Local:
		return "local"
	case o < Deny || o > Local:
		return "invalid"
	}
	percent := fmt.Sprintf("%d.%04d", o/10_000, o%10_000)
	return "local " + strings.TrimSuffix(strings.TrimRight(percent, "0"), ".") + "%"
}

// Limit returns the limit that decides while the store fails: the share of l under Local, and l
// under Deny and Allow. The error is a [*algorithm.LimitError] for a limit that has no such share
// (see [algorithm.Limit.Share]), or reports an o that is no OnError.
func (o OnError) Limit(l algorithm.Limit) (algorithm.Limit, error) {
	switch {
	case o < Allow || o > Local:
		return l, errors.New("weir: the local share of the limit while the store fails is out of range; accepted: " + shareAccepted)
	case o <= Deny:
		return l, nil
	}
	return l.Share(int64(o), wholeShare)
}

type onErrorKey struct{}

// WithOnError returns a context for calls with a decision of their own while the store fails, in
// place of the decision of the limiter or of the policies. The context is only looked at when the
// store has failed.
func WithOnError(ctx context.Context, o OnError) context.Context {
	return context.WithValue(ctx, onErrorKey{}, o)
}

// OnErrorOf returns the OnError of a context of WithOnError, otherwise standard.
func OnErrorOf(ctx context.Context, standard OnError) OnError {
	if o, ok := ctx.Value(onErrorKey{}).(OnError); ok {
		return o
	}
	return standard
}

// IsFailure reports whether the error of an operation is a failure of the store, in place of which
// OnError decides. Errors of the caller are no failures: a canceled context, an invalid operation, a
// key with a value that is not weir's. Too many requests at a time ([ErrOverloaded]) are no failure
// either. A deadline of ctx that ended during the operation is a failure: the store was too slow for
// it.
func IsFailure(ctx context.Context, err error) bool {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	for _, target := range []error{ErrOverloaded, ErrTime, ErrClientTime, ErrUnnamed, errTwoLimits} {
		if errors.Is(err, target) {
			return false
		}
	}
	_, foreign := errors.AsType[*KeyError](err)
	_, invalid := errors.AsType[*algorithm.LimitError](err)
	return !foreign && !invalid
}

// errTwoLimits is in the error of a joint take with two limits for one name and key.
var errTwoLimits = errors.New("accepted: one limit for each name")
