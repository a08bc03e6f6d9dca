package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// fail says what failed, where, and what is known of it. Errors of the server's that stores have a value for become that; all
// others are counted.
func (s *Store) fail(verb string, err error) error {
	if told, ok := rueidis.IsRedisErr(err); ok {
		text := strings.TrimPrefix(told.Error(), "ERR ")
		if known := knownError(text); known != nil {
			return known
		}
		s.failures.Add(1)
		return &refusal{fmt.Sprintf("remote: %s at %s: %s", verb, s.address, text), classifyText(told.Error())}
	}
	s.failures.Add(1)
	if isDial(err) || errors.Is(err, errUnconnected) {
		return fmt.Errorf("remote: %s at %s: %w; %w", verb, s.address, err, store.ErrNothingDone)
	}
	return fmt.Errorf("remote: %s at %s: %w; it is not known whether units were taken", verb, s.address, err)
}

// A refusal is an error that the server answered.
type refusal struct {
	text  string
	cause store.Cause
}

func (e *refusal) Error() string { return e.text }

// Is reports that nothing was done where the server says so: that of its own store's error. The same
// holds for an overload.
func (e *refusal) Is(target error) bool {
	return target == store.ErrOverloaded && strings.Contains(e.text, store.ErrOverloaded.Error()) || target == store.ErrNothingDone &&
		(e.cause == store.CauseUnready || strings.HasSuffix(e.text, store.ErrNothingDone.Error()))
}

// classifyText returns the cause of an error that the server answered. One that refuses a client, or whom it takes it for,
// refuses all its commands.
func classifyText(text string) store.Cause {
	for _, prefix := range []string{"NOAUTH ", "WRONGPASS ", "ERR max number of clients"} {
		if strings.HasPrefix(text, prefix) {
			return store.CauseUnready
		}
	}
	return store.CauseRejection
}

// isDial reports whether an error is of a connection that was not made. Nothing was sent on it.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// classify returns the cause of an error.
func classify(err error) store.Cause {
	told, answered := errors.AsType[*refusal](err)
	network, isNetwork := errors.AsType[net.Error](err)
	_, limit := errors.AsType[*algorithm.LimitError](err)
	switch {
	case answered:
		return told.cause
	case limit, errors.Is(err, store.ErrTime):
		return store.CauseRejection
	case errors.Is(err, rueidis.ErrClosing), errors.Is(err, store.ErrUnnamed), errors.Is(err, store.ErrClientTime):
		return store.CauseCaller
	case isDial(err), errors.Is(err, errUnconnected):
		return store.CauseConnection
	case isNetwork && network.Timeout():
		return store.CauseTimeout
	case isNetwork, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return store.CauseLost
	}
	return store.CauseRejection
}

func knownError(text string) error {
	switch {
	case strings.HasPrefix(text, "limit has "):
		if limit := limitError(text); limit != nil {
			return limit
		}
	case strings.HasPrefix(text, "NAME is missing"):
		return store.ErrUnnamed
	case strings.HasPrefix(text, "AT is out of range"):
		return store.ErrTime
	case strings.HasPrefix(text, "AT is refused"):
		return store.ErrClientTime
	}
	return nil
}

// limitError reads the text of a LimitError, or returns nil. The value may be in quotes, and have anything inside.
func limitError(text string) *algorithm.LimitError {
	field, rest, ok := strings.Cut(strings.TrimPrefix(text, "limit has "), " ")
	if !ok {
		return nil
	}
	value, err := strconv.QuotedPrefix(rest)
	if err != nil {
		value, _, _ = strings.Cut(rest, "; accepted: ")
	}
	accept, ok := strings.CutPrefix(rest[len(value):], "; accepted: ")
	if !ok {
		return nil
	}
	return &algorithm.LimitError{Field: field, Value: value, Accept: accept}
}
