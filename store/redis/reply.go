package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// A reply is the unread rest of a reply of the script, see take.lua.
type reply struct {
	at   int64 // the time of the operation, in microseconds
	rest string
}

func readReply(text string) (reply, error) {
	seconds, rest, _ := strings.Cut(text, " ")
	micros, rest, _ := strings.Cut(rest, " ")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err == nil {
		var us int64
		us, err = strconv.ParseInt(micros, 10, 64)
		return reply{at: s*1_000_000 + us, rest: rest}, badReply(text, err)
	}
	return reply{}, badReply(text, err)
}

func badReply(text string, err error) error {
	if err != nil {
		return fmt.Errorf("redis: the script returned %.100q: %w", text, err)
	}
	return nil
}

// next returns the grant of the next part, and its state before.
func (r *reply) next() (granted, old string) {
	granted, r.rest, _ = strings.Cut(r.rest, " ")
	old, r.rest, _ = strings.Cut(r.rest, " ")
	return granted, old
}

// kind returns the first byte after the time: '?' before values, '!' before a time whose window the
// script needs, ' ' if there is nothing, and otherwise that of the first grant.
func (r *reply) kind() byte {
	if r.rest == "" {
		return ' '
	}
	return r.rest[0]
}

// values reports whether the script changed nothing, and returned the values.
func (r *reply) values() bool { return r.kind() == '?' }

// untold reports whether the script changed nothing, and left out the values because they are long.
func (r *reply) untold() bool { return r.rest == "?" }

// readValues returns the values of so many keys.
func (r *reply) readValues(keys int) ([]string, error) {
	values := make([]string, 0, keys)
	rest := strings.TrimPrefix(r.rest, "?")
	for range keys {
		length, text, found := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if err != nil || !found || n < 0 || n > len(text) {
			return nil, fmt.Errorf("redis: the script returned %.100q, which are no %d values", r.rest, keys)
		}
		values, rest = append(values, text[:n]), text[n:]
	}
	return values, nil
}

// verdict derives the verdict of a step from the state that the script found.
func (s *step) verdict(counts *Store, granted, old string, at int64) (algorithm.Verdict, error) {
	state, err := s.machine.state(old)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	if err := s.program.Check(state); err != nil {
		return algorithm.Verdict{}, fmt.Errorf("redis: %w", err)
	}
	granted, healed := strings.CutPrefix(granted, "healed:")
	if s.heals() && s.program.Heal(state, at) || healed {
		if !s.peeks() {
			counts.healed.Add(1)
		}
	}
	_, result := s.program.Apply(state, s.Op, at)
	v := result.Verdict()
	if !s.agrees(granted, v) {
		return v, fmt.Errorf("redis: the script granted %q where %s found in state %.100q grants %d; this is an error of weir's",
			granted, s.program.Limit(), old, v.Granted)
	}
	return v, nil
}

// agrees reports whether the grant of the script is that of the program.
func (s *step) agrees(granted string, v algorithm.Verdict) bool {
	if s.peeks() {
		return granted == "+"
	}
	switch s.Op.Kind {
	case algorithm.Take, algorithm.Renew:
		return (granted == "+") == (v.Granted >= 0)
	case algorithm.TakeUpTo:
		return granted == "-" && v.Granted < 0 || granted == strconv.FormatInt(v.Granted, 10)
	case algorithm.Cancel:
		return (granted == "+") == (v.Granted > 0)
	default:
		return true
	}
}
