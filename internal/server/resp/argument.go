package resp

import (
	"math"
	"time"
)

// number reads an argument that is a whole number of at least least. When it is not, it replies with the reason.
func (c *conn) number(name string, arg []byte, least int64) (n int64, ok bool) {
	return c.numberIn(name, arg, span{least, math.MaxInt64})
}

func (c *conn) numberIn(name string, arg []byte, in span) (n int64, ok bool) {
	n, ok = parseInt(arg)
	if !ok || n < in.least || n > in.most {
		c.fail(in.refusal(name, arg))
		return 0, false
	}
	return n, true
}

// mostSeconds bounds times so that no conversion of them overflows. A store refuses many of those within it too.
const mostSeconds = 1 << 40

// reach returns the times that a number of units may mean, of those that have 63 bits in nanoseconds.
func reach(unit time.Duration) span {
	if unit == time.Nanosecond {
		return span{-math.MaxInt64, math.MaxInt64}
	}
	most := mostSeconds * int64(time.Second/unit)
	return span{-most, most}
}
