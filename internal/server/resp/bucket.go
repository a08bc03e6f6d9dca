package resp

import (
	"math"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

func (c *conn) rlReduce()      { c.bucket(time.Second, true) }
func (c *conn) rlGet()         { c.bucket(time.Second, false) }
func (c *conn) rlReduceMilli() { c.bucket(time.Millisecond, true) }
func (c *conn) rlGetMilli()    { c.bucket(time.Millisecond, false) }

// A bucket is what an RL command asks.
type bucket struct {
	unit    time.Duration // of the command's times
	reduces bool          // or only reads
	most    int64         // tokens that it holds
	period  int64         // in units
	refill  int64         // tokens added each period
	take    int64         // tokens
	at      int64         // nanoseconds since 1970, or store.OwnClock
}

// bucket carries out an RL command: it replies with the tokens before taking.
func (c *conn) bucket(unit time.Duration, reduces bool) {
	b := bucket{unit: unit, reduces: reduces, at: store.OwnClock}
	key, ok := c.key(c.args[1])
	if !ok || !c.bucketArguments(&b) || !c.permitsKey(c.last.right, "", key) {
		return
	}
	bound, err := c.server.options.Limiters.Bind(nil, c.bucketText(&b), false)
	if err != nil {
		c.failWith(err)
		return
	}
	c.do(call{
		bound: bound, key: key, op: algorithm.Op{Kind: algorithm.TakeUpTo, Cost: b.take}, at: b.at,
		form: tokensForm, counts: b.take > 0,
	})
}

func (c *conn) bucketArguments(b *bucket) (ok bool) {
	if b.most, ok = c.number("max", c.args[2], 1); !ok {
		return false
	}
	if b.period, ok = c.numberIn("refilltime", c.args[3], span{1, math.MaxInt64 / int64(b.unit)}); !ok {
		return false
	}
	b.refill = b.most
	if b.reduces {
		b.take = 1
	}
	for args := c.args[4:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs a value")
			return false
		}
		if !c.bucketOption(b, args[0], args[1]) {
			return false
		}
	}
	return true
}

// bucketOption reads an option. One that comes twice counts as it came last.
func (c *conn) bucketOption(b *bucket, name, value []byte) (ok bool) {
	switch {
	case c.is(name, "REFILL"):
		b.refill, ok = c.number("REFILL", value, 1)
	case c.is(name, "TAKE") && b.reduces:
		b.take, ok = c.number("TAKE", value, 0)
	case c.is(name, "AT"):
		b.at, ok = c.time(value, b.unit)
	case b.reduces:
		c.fail("ERR syntax error at " + excerpt(name) + "; accepted: REFILL n, TAKE n, AT time")
	default:
		c.fail("ERR syntax error at " + excerpt(name) + "; accepted: REFILL n, AT time")
	}
	return ok
}

// bucketText returns the limit text of the bucket. It is good until the next one.
func (c *conn) bucketText(b *bucket) []byte {
	t := c.text[:0]
	t = append(t, "refill-bucket "...)
	t = append(strconv.AppendInt(t, b.refill, 10), '/')
	t = strconv.AppendInt(t, b.period, 10)
	if b.unit == time.Millisecond {
		t = append(t, 'm')
	}
	t = append(t, "s burst="...)
	c.text = strconv.AppendInt(t, b.most, 10)
	return c.text
}
