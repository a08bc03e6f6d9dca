package remote

import (
	"errors"
	"fmt"
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
		return fmt.Errorf("remote: %s at %s: %s", verb, s.address, text)
	}
	s.failures.Add(1)
	const unknown, nothing = "; it is not known whether units were taken", "; nothing was taken"
	hint := unknown
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		hint = nothing
	}
	return fmt.Errorf("remote: %s at %s: %w%s", verb, s.address, err, hint)
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
