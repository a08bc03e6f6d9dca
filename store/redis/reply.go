package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// A reply is what the script returned, as far as it has not been read: see take.lua.
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

// next returns what the next part was granted, and its state before.
func (r *reply) next() (granted, old string) {
	granted, r.rest, _ = strings.Cut(r.rest, " ")
	old, r.rest, _ = strings.Cut(r.rest, " ")
	return granted, old
}

// verdict derives the answer to an operation from the state that the script found.
func (b *binding) verdict(op algorithm.Op, granted, old string, at int64, heals bool) (algorithm.Verdict, error) {
	state, err := b.machine.state(old)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	if err := b.program.Check(state); err != nil {
		return algorithm.Verdict{}, fmt.Errorf("redis: %w", err)
	}
	healed := strings.HasPrefix(granted, "h")
	if healed {
		granted = granted[1:]
	}
	if heals && b.program.Heal(state, at) || healed {
		if !peeks(op, b.capacity) {
			b.store.healed.Add(1)
		}
	}
	_, result := b.program.Apply(state, op, at)
	v := result.Verdict()
	if !agree(op, granted, v, b.capacity) {
		return v, fmt.Errorf("redis: the script granted %q where %s found in state %.100q grants %d; this is an error of weir's",
			granted, b.program.Limit(), old, v.Granted)
	}
	return v, nil
}

// agree reports whether the script granted what the program does.
func agree(op algorithm.Op, granted string, v algorithm.Verdict, capacity int64) bool {
	if peeks(op, capacity) {
		return granted == "+"
	}
	switch op.Kind {
	case algorithm.Take:
		return (granted == "+") == (v.Granted >= 0)
	case algorithm.TakeUpTo:
		return granted == "-" && v.Granted < 0 || granted == strconv.FormatInt(v.Granted, 10)
	case algorithm.Cancel:
		return (granted == "+") == (v.Granted > 0)
	default:
		return true
	}
}
