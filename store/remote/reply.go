package remote

import (
	"fmt"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
)

// A reply is what the server says of an operation, in nanoseconds.
type reply struct {
	allowed                      bool
	remaining                    int64
	retryAfter, resetAfter, wait int64
	granted                      int64
	at                           int64
}

// read reads the reply to a command that says, besides the decision, what was granted, or at what time.
func (s *Store) read(fields []int64, granted, stamped bool) (r reply, err error) {
	want := 6
	if granted {
		want++
	}
	if stamped {
		want++
	}
	if len(fields) != want {
		return r, s.fail("reply", fmt.Errorf("%d numbers; accepted: %d", len(fields), want))
	}
	r = reply{
		allowed: fields[0] == 1, remaining: fields[2],
		retryAfter: fields[3], resetAfter: fields[4], wait: fields[5],
	}
	if granted {
		r.granted = fields[6]
	}
	if stamped {
		r.at = fields[want-1]
	}
	return r, nil
}

func (r reply) verdict() algorithm.Verdict {
	v := algorithm.Verdict{Granted: r.granted, Remaining: r.remaining, Wait: wait(r.wait), Reset: wait(r.resetAfter)}
	if !r.allowed {
		v.Granted, v.Wait = -1, wait(r.retryAfter)
	}
	return v
}

// numbers reads a reply that is an array of numbers.
func (s *Store) numbers(verb string, result rueidis.RedisResult) ([]int64, error) {
	fields, err := result.AsIntSlice()
	if err != nil {
		return nil, s.fail(verb, err)
	}
	return fields, nil
}
