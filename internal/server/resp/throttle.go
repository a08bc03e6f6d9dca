package resp

import (
	"math"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
)

func dropInCommands() []*command {
	write, read := []string{"write", "fast"}, []string{"readonly", "fast"}
	return []*command{
		{name: "cl.throttle", arity: -5, key: 1, flags: write, group: "weir", batched: true, run: (*conn).redisCell,
			summary: "Asks to pass, as redis-cell has it."},
		{name: "throttle", arity: -5, key: 1, flags: write, group: "weir", batched: true, run: (*conn).throttlecrab,
			summary: "Asks to pass, as throttlecrab has it."},
		{name: "rl.reduce", arity: -4, key: 1, flags: write, group: "weir", run: (*conn).rlReduce,
			summary: "Takes tokens from a bucket, as Smyte's ratelimit has it; in seconds."},
		{name: "rl.get", arity: -4, key: 1, flags: read, group: "weir", run: (*conn).rlGet,
			summary: "Says how many tokens a bucket has; in seconds."},
		{name: "rl.preduce", arity: -4, key: 1, flags: write, group: "weir", run: (*conn).rlReduceMilli,
			summary: "Takes tokens from a bucket; in milliseconds."},
		{name: "rl.pget", arity: -4, key: 1, flags: read, group: "weir", run: (*conn).rlGetMilli,
			summary: "Says how many tokens a bucket has; in milliseconds."},
	}
}

// A throttle is the limit of CL.THROTTLE and THROTTLE.
type throttle struct {
	capacity, count int64
	period          time.Duration
}

// redisCell is CL.THROTTLE, whose max_burst does not count the request that is always admitted to an idle key.
func (c *conn) redisCell() {
	c.throttle(redisCellForm, span{0, math.MaxInt64 - 1}, 1)
}

// throttlecrab is THROTTLE, whose max_burst is the capacity.
func (c *conn) throttlecrab() {
	c.throttle(throttlecrabForm, span{1, math.MaxInt64}, 0)
}

func (c *conn) throttle(f form, burst span, more int64) {
	if len(c.args) > 6 {
		c.wrongArity(c.last.name)
		return
	}
	key, ok := c.key(c.args[1])
	if !ok {
		return
	}
	t, ok := c.throttleLimit(burst, more)
	if !ok || !c.permitsKey(c.last.right, limiters.ThrottleName, key) {
		return
	}
	quantity := int64(1)
	if len(c.args) == 6 {
		if quantity, ok = c.number("quantity", c.args[5], 0); !ok {
			return
		}
	}
	bound := c.bindThrottle(t)
	switch {
	case bound == nil:
	case c.server.options.Waits:
		c.later(call{bound: bound, key: key, op: algorithm.Op{Cost: quantity}, at: store.OwnClock, form: f, counts: true})
	default:
		c.add(bound, f, key, quantity)
	}
}

func (c *conn) throttleLimit(burst span, more int64) (t throttle, ok bool) {
	if t.capacity, ok = c.numberIn("max_burst", c.args[2], burst); !ok {
		return t, false
	}
	t.capacity += more
	if t.count, ok = c.number("count", c.args[3], 1); !ok {
		return t, false
	}
	seconds, ok := c.numberIn("period", c.args[4], span{1, math.MaxInt64 / int64(time.Second)})
	t.period = time.Duration(seconds) * time.Second
	return t, ok
}

// bindThrottle returns what is bound for the throttle, or nil. Clients mostly use one, which the connection remembers.
func (c *conn) bindThrottle(t throttle) *store.Bound {
	if c.throttled != nil && t == c.lastThrottle {
		return c.throttled
	}
	b, err := c.server.options.Limiters.Throttle(t.capacity, t.count, t.period)
	if err != nil {
		c.failWith(err)
		return nil
	}
	c.throttled, c.lastThrottle = b, t
	return b
}
