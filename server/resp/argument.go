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

// time reads the argument of AT, in units since 1970, if clients may say what time it is.
func (c *conn) time(arg []byte, unit time.Duration) (at time.Time, ok bool) {
	if !c.server.options.TrustClientTime {
		c.fail("ERR AT is refused: this server does not trust the time of its clients (weir serve --trust-client-time does)")
		return at, false
	}
	perSecond := int64(time.Second / unit)
	n, ok := c.numberIn("AT", arg, span{-mostSeconds * perSecond, mostSeconds * perSecond})
	if !ok {
		return at, false
	}
	return time.Unix(n/perSecond, n%perSecond*int64(unit)), true
}

// mostSeconds bounds times so that no conversion of them overflows. A limiter refuses many of those within it too.
const mostSeconds = 1 << 40
