package resp

import (
	"math"
	"strconv"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// dropInCommands are the commands of other servers, for the operations take and take up to.
func dropInCommands() []*command {
	bucket := func(unit time.Duration, reduces bool) func(*conn) {
		return func(c *conn) { c.bucket(bucket{unit: unit, reduces: reduces}) }
	}
	list := []*command{
		// redis-cell's max_burst does not count the request that is always admitted to an idle key;
		// throttlecrab's is the capacity.
		{name: "cl.throttle", arity: -5, flags: writes, run: func(c *conn) { c.throttle(redisCellForm, operation.Span{Least: 0, Most: math.MaxInt64 - 1}, 1) },
			summary: "Asks to pass, as redis-cell has it."},
		{name: "throttle", arity: -5, flags: writes, run: func(c *conn) { c.throttle(throttlecrabForm, positive, 0) },
			summary: "Asks to pass, as throttlecrab has it."},
		{name: "rl.reduce", arity: -4, flags: writes, run: bucket(time.Second, true),
			summary: "Takes tokens from a bucket, as Smyte's ratelimit has it; in seconds."},
		{name: "rl.get", arity: -4, flags: reads, run: bucket(time.Second, false),
			summary: "Says how many tokens a bucket has; in seconds."},
		{name: "rl.preduce", arity: -4, flags: writes, run: bucket(time.Millisecond, true),
			summary: "Takes tokens from a bucket; in milliseconds."},
		{name: "rl.pget", arity: -4, flags: reads, run: bucket(time.Millisecond, false),
			summary: "Says how many tokens a bucket has; in milliseconds."},
	}
	for _, cmd := range list {
		cmd.key, cmd.group, cmd.right = 1, "weir", access.Take
	}
	return list
}

var positive = operation.Span{Least: 1, Most: math.MaxInt64}

// A throttle is the limit of CL.THROTTLE and THROTTLE.
type throttle struct {
	capacity, count int64
	period          time.Duration
}

func (c *conn) throttle(f form, burst operation.Span, more int64) {
	if len(c.args) > 6 {
		c.wrongArity(c.last.name)
		return
	}
	key, ok := c.key(c.args[1])
	if !ok {
		return
	}
	t, ok := c.throttleLimit(burst, more)
	if !ok || !c.permitsKey(limiters.ThrottleName, key) {
		return
	}
	quantity := int64(1)
	if len(c.args) == 6 {
		if quantity, ok = c.numberIn("quantity", c.args[5], operation.Cost.Span(0)); !ok {
			return
		}
	}
	if bound := c.bindThrottle(t); bound != nil {
		c.put(pending{bound: bound, key: key, cost: quantity, form: f})
	}
}

func (c *conn) throttleLimit(burst operation.Span, more int64) (t throttle, ok bool) {
	if t.capacity, ok = c.numberIn("max_burst", c.args[2], burst); !ok {
		return t, false
	}
	t.capacity += more
	if t.count, ok = c.numberIn("count", c.args[3], positive); !ok {
		return t, false
	}
	seconds, ok := c.numberIn("period", c.args[4], operation.Span{Least: 1, Most: math.MaxInt64 / int64(time.Second)})
	t.period = time.Duration(seconds) * time.Second
	return t, ok
}

// bindThrottle returns the bound limit of the throttle, or nil. Clients mostly use one, which the connection remembers.
func (c *conn) bindThrottle(t throttle) *store.Bound {
	if c.throttled != nil && t == c.lastThrottle {
		return c.throttled
	}
	b, err := c.server.options.Limiters.Throttle(t.capacity, t.count, t.period)
	if err != nil {
		c.failWith(err, "")
		return nil
	}
	c.throttled, c.lastThrottle = b, t
	return b
}

// A bucket is the arguments of an RL command.
type bucket struct {
	unit    time.Duration // of the command's times
	reduces bool          // or only reads
	most    int64         // tokens that it holds
	period  int64         // in units
	refill  int64         // tokens added each period
}

// takeUpTo is the operation of the RL commands.
var takeUpTo = operation.ByCommand("weir.takeupto")

// bucket carries out an RL command: it replies with the tokens before taking.
func (c *conn) bucket(b bucket) {
	k := c.newCall(takeUpTo)
	k.form, k.Exact, k.Op.Cost = tokensForm, true, 0
	var ok bool
	if k.Key, ok = c.key(c.args[1]); !ok || !c.bucketArguments(k, &b) || !c.permitsKey("", k.Key) || !c.bind(k, c.bucketText(&b)) {
		return
	}
	c.do(k)
}

func (c *conn) bucketArguments(k *call, b *bucket) (ok bool) {
	if b.most, ok = c.numberIn("max", c.args[2], positive); !ok {
		return false
	}
	if b.period, ok = c.numberIn("refilltime", c.args[3], operation.Span{Least: 1, Most: math.MaxInt64 / int64(b.unit)}); !ok {
		return false
	}
	b.refill = b.most
	if b.reduces {
		k.Op.Cost = 1
	}
	for args := c.args[4:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs a value")
			return false
		}
		if !c.bucketOption(k, b, args[0], args[1]) {
			return false
		}
	}
	return true
}

// bucketOption reads an option. One that comes twice counts as it came last.
func (c *conn) bucketOption(k *call, b *bucket, name, value []byte) (ok bool) {
	switch {
	case c.is(name, "REFILL"):
		b.refill, ok = c.numberIn("REFILL", value, positive)
	case c.is(name, "TAKE") && b.reduces:
		k.Op.Cost, ok = c.numberIn("TAKE", value, operation.Cost.Span(0))
	case c.is(name, "AT"):
		ok = c.time(k, operation.At, "AT", value, b.unit)
	case b.reduces:
		c.fail("ERR syntax error at " + excerpt(name) + "; accepted: REFILL n, TAKE n, AT time")
	default:
		c.fail("ERR syntax error at " + excerpt(name) + "; accepted: REFILL n, AT time")
	}
	return ok
}

// bucketText returns the limit text of the bucket. It is good until the next one.
func (c *conn) bucketText(b *bucket) []byte {
	t := c.limit[:0]
	t = append(t, "refill-bucket "...)
	t = append(strconv.AppendInt(t, b.refill, 10), '/')
	t = strconv.AppendInt(t, b.period, 10)
	if b.unit == time.Millisecond {
		t = append(t, 'm')
	}
	t = append(t, "s burst="...)
	c.limit = strconv.AppendInt(t, b.most, 10)
	return c.limit
}
