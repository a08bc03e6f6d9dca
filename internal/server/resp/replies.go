package resp

import (
	"strconv"
	"time"

	"github.com/weirlimit/weir"
)

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
	r.integer(wholeUnits(d, unit))
}

// wholeUnits returns d in units, rounded up, and -1 for never.
func wholeUnits(d, unit time.Duration) int64 {
	if d == weir.Never {
		return -1
	}
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
