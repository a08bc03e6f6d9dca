package resp

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// A form is the form of the reply to a decision.
type form uint8

const (
	decisionForm     form = iota
	redisCellForm         // of CL.THROTTLE
	throttlecrabForm      // of THROTTLE
	tokensForm            // of RL.*: the tokens before taking
)

// unit returns the unit of the times of a call and its reply.
func (k *call) unit() time.Duration {
	if k.Given&operation.NS != 0 {
		return time.Nanosecond
	}
	return time.Microsecond
}

// call writes the result of a call.
func (r *replies) call(k *call) {
	switch {
	case k.Form == operation.Settlement && k.Next != "":
		r.bulk(k.Next)
	case k.Form == operation.Settlement, k.Kind == algorithm.Reset && k.Given&operation.Time == 0:
		r.ok()
	case k.Form == operation.Request:
		r.checked(k)
	case k.Form == operation.Limits:
		r.joint(k)
	case k.form == tokensForm:
		r.integer(k.GrantedUnits() + k.Verdict.Remaining)
	default:
		d := k.Decision()
		if k.form != decisionForm {
			r.form(k.form, &d)
			return
		}
		r.array(6 + one(k.Granted) + one(k.Given&operation.Time != 0) + one(k.Given&operation.OnError != 0))
		r.decision(&d, k.unit())
		if k.Granted {
			r.integer(k.GrantedUnits())
		}
		if k.Given&operation.Time != 0 {
			r.instant(k.Took, k.unit())
		}
		r.source(k)
	}
}

// source ends the reply to a call with ONERROR: who decided.
func (r *replies) source(k *call) {
	if k.Given&operation.OnError != 0 {
		r.integer(int64(k.Source()))
	}
}

// joint is the decision on the request, those of its parts, and after ONERROR who decided.
func (r *replies) joint(k *call) {
	all, each := k.Decisions()
	stamped := k.Given&operation.Time != 0
	r.array(1 + len(each) + one(k.Given&operation.OnError != 0))
	r.array(6)
	r.decision(&all, k.unit())
	for i := range each {
		reserved, o := k.Parts[i].ID != 0, k.Outcomes[i]
		r.array(6 + one(reserved) + one(stamped))
		r.decision(&each[i], k.unit())
		if reserved {
			r.integer(max(0, o.Granted))
		}
		if stamped {
			r.instant(o.At, k.unit())
		}
	}
	r.source(k)
}

// checked is the result of a check: the decision in numbers, the names of the policies that denied, the token, and
// the decision of each limit; and after ONERROR who decided.
func (r *replies) checked(k *call) {
	d := k.Checked
	r.array(9 + one(k.Given&operation.OnError != 0))
	r.decision(&d.Decision, time.Microsecond)
	r.array(len(d.Denied))
	for _, name := range d.Denied {
		r.bulk(name)
	}
	r.bulk(d.Token)
	r.array(len(d.Each))
	for i := range d.Each {
		l := &d.Each[i]
		r.array(9)
		r.bulk(l.Policy)
		r.bulk(checks.LimitText(*l))
		r.bulk(l.Role.String())
		r.decision(&l.Decision, time.Microsecond)
	}
	r.source(k)
}

// form writes a decision in a form.
func (r *replies) form(f form, d *algorithm.Decision) {
	switch f {
	case redisCellForm:
		retry := int64(-1)
		if !d.Allowed {
			retry = operation.WholeUnits(d.RetryAfter, time.Second)
		}
		r.buf = append(r.buf, "*5\r\n"...)
		r.verdict(!d.Allowed)
		r.integer(d.Limit)
		r.integer(d.Remaining)
		r.integer(retry)
		r.wait(d.ResetAfter, time.Second)
	case throttlecrabForm:
		r.buf = append(r.buf, "*5\r\n"...)
		r.verdict(d.Allowed)
		r.integer(d.Limit)
		r.integer(d.Remaining)
		r.wait(d.ResetAfter, time.Second)
		r.wait(d.RetryAfter, time.Second)
	default:
		r.buf = append(r.buf, "*6\r\n"...)
		r.decision(d, time.Microsecond)
	}
}

// decision is six numbers: waits are rounded up to units, and -1 for never.
func (r *replies) decision(d *algorithm.Decision, unit time.Duration) {
	r.verdict(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.wait(d.RetryAfter, unit)
	r.wait(d.ResetAfter, unit)
	r.wait(d.Delay, unit)
}

// instant writes nanoseconds since 1970 in a unit, rounded down, or null if the store does not tell
// the time.
func (r *replies) instant(ns int64, unit time.Duration) {
	switch {
	case ns == store.OwnClock:
		r.null()
	case unit == time.Nanosecond:
		r.integer(ns)
	default:
		r.integer(store.Microseconds(ns))
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// failWith replies with as much of an error as a client may see: all of it if the call is at fault,
// nothing if the server is. next is the token of what is still held after an error, or "".
func (c *conn) failWith(err error, next string) {
	text := "no decision could be made, try again"
	fault, shown := c.server.options.FaultOf(err, &c.counts, "resp")
	if shown != nil {
		text = strings.TrimPrefix(shown.Error(), "weir: ")
	}
	switch fault {
	case operation.Forbidden:
		c.fail(noKey)
		return
	case operation.Overloaded:
		text = store.ErrOverloaded.Error() + ", try again; " + store.ErrNothingDone.Error()
	case operation.BadTime:
		text = "AT is out of range; accepted: a time " + operation.TimeRange
	case operation.NoTime:
		text = "AT is refused: the store of this server decides by its own clock"
	case operation.Unnamed:
		text = "NAME is missing; accepted: NAME name, of the limiter under which reservations are kept"
	case operation.BadToken, operation.Settled:
		if next != "" {
			text += "; what is still held is under " + next
		}
	}
	c.fail("ERR " + text)
}

// replies are what is to be written to a client, encoded.
type replies struct {
	buf   []byte
	three bool // RESP3, after HELLO 3
}

func (r *replies) line(kind byte, text string) {
	r.buf = append(r.buf, kind)
	r.buf = append(r.buf, text...)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *replies) number(kind byte, n int64) {
	r.buf = append(r.buf, kind)
	r.buf = strconv.AppendInt(r.buf, n, 10)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *replies) ok()             { r.line('+', "OK") }
func (r *replies) simple(s string) { r.line('+', s) }
func (r *replies) integer(n int64) { r.number(':', n) }
func (r *replies) array(n int)     { r.number('*', int64(n)) }
func (r *replies) bulk(s string)   { r.number('$', int64(len(s))); r.end(s) }
func (r *replies) bytes(b []byte)  { r.number('$', int64(len(b))); r.end(string(b)) }
func (r *replies) end(s string)    { r.buf = append(append(r.buf, s...), '\r', '\n') }
func (r *replies) set(n int)       { r.either('~', '*', n) }
func (r *replies) either(three, two byte, n int) {
	if r.three {
		two = three
	}
	r.number(two, int64(n))
}

// pairs begins a map of n keys and values: in RESP2, an array of twice as many.
func (r *replies) pairs(n int) {
	if r.three {
		r.number('%', int64(n))
	} else {
		r.number('*', 2*int64(n))
	}
}

// null is the reply for a text that is not there.
func (r *replies) null() {
	if r.three {
		r.line('_', "")
	} else {
		r.line('$', "-1")
	}
}

// nullArray is the reply for an array that is not there.
func (r *replies) nullArray() {
	if r.three {
		r.line('_', "")
	} else {
		r.line('*', "-1")
	}
}

// text is a bulk that is meant for people.
func (r *replies) text(s string) {
	if r.three {
		r.number('=', int64(len(s)+4))
		r.end("txt:" + s)
	} else {
		r.bulk(s)
	}
}

// failure is an error. What would end its line is replaced.
func (r *replies) failure(text string) {
	r.buf = append(r.buf, '-')
	for i := range len(text) {
		r.buf = append(r.buf, max(text[i], ' '))
	}
	r.buf = append(r.buf, '\r', '\n')
}

func (r *replies) verdict(yes bool) {
	if yes {
		r.buf = append(r.buf, ":1\r\n"...)
	} else {
		r.buf = append(r.buf, ":0\r\n"...)
	}
}

func (r *replies) wait(d, unit time.Duration) {
	if d == 0 {
		r.buf = append(r.buf, ":0\r\n"...)
		return
	}
	r.integer(operation.WholeUnits(d, unit))
}
