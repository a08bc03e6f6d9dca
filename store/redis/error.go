package redis

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// fail counts an error of the server, or of the way to it, and says what failed, where, and what is known of it.
func (s *Store) fail(verb string, err error) error {
	s.failures.Add(1)
	return fmt.Errorf("redis: %s at %s: %w%s", verb, s.server, err, hint(err))
}

// hint says what an error means, or how much of the operation was done.
func hint(err error) string {
	const nothing = "; nothing was taken"
	if _, ok := rueidis.IsRedisErr(err); ok {
		switch text := err.Error(); {
		case strings.Contains(text, "syntax error"), strings.Contains(text, "non deterministic"),
			strings.Contains(text, "Unknown Redis command"), strings.Contains(text, "unknown command"):
			return "; accepted: Redis 6.2 or later, or Valkey, with scripts"
		case strings.HasPrefix(text, "NOPERM"), strings.Contains(text, "can't run this command"), strings.Contains(text, "No permissions"):
			return "; the user needs the rights that docs/redis.md lists"
		}
		return ""
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return nothing
	}
	return "; it is not known whether units were taken"
}
