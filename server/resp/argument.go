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

// reach returns the times that a number of units may mean.
func reach(unit time.Duration) span {
	most := int64(math.MaxInt64)
	if perSecond := int64(time.Second / unit); perSecond < most/mostSeconds {
		most = mostSeconds * perSecond
	}
	return span{-most, most}
}
