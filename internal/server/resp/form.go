package resp

import (
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A form is how a decision is written.
type form uint8

const (
	weirForm         form = iota
	nanosecondForm        // weirForm, with waits in nanoseconds
	redisCellForm         // of CL.THROTTLE
	throttlecrabForm      // of THROTTLE
	okForm                // OK
	tokensForm            // of RL.*: the tokens before taking
)

// write writes a decision in one of the forms that say nothing more.
func (r *replies) write(f form, d algorithm.Decision) {
	switch f {
	case redisCellForm:
		r.redisCell(d)
	case throttlecrabForm:
		r.throttlecrab(d)
	case okForm:
		r.ok()
	default:
		r.array(6)
		r.decision(d, f.unit())
	}
}

func (f form) unit() time.Duration {
	if f == nanosecondForm {
		return time.Nanosecond
	}
	return time.Microsecond
}

// decision is six numbers: waits are rounded up to units, and -1 for never.
func (r *replies) decision(d algorithm.Decision, unit time.Duration) {
	r.verdict(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.wait(d.RetryAfter, unit)
	r.wait(d.ResetAfter, unit)
	r.wait(d.Delay, unit)
}

// redisCell is the reply to CL.THROTTLE.
func (r *replies) redisCell(d algorithm.Decision) {
	retry := int64(-1)
	if !d.Allowed {
		retry = wholeUnits(d.RetryAfter, time.Second)
	}
	r.buf = append(r.buf, "*5\r\n"...)
	r.verdict(!d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(retry)
	r.wait(d.ResetAfter, time.Second)
}

// throttlecrab is the reply to THROTTLE.
func (r *replies) throttlecrab(d algorithm.Decision) {
	r.buf = append(r.buf, "*5\r\n"...)
	r.verdict(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.wait(d.ResetAfter, time.Second)
	r.wait(d.RetryAfter, time.Second)
}
