package resp

import (
	"strconv"
	"time"
	"unsafe"

	"github.com/weirlimit/weir"
)

func weirCommands() []*command {
	write := []string{"write", "fast"}
	return []*command{
		{name: "weir.take", arity: -3, key: 1, flags: write, group: "weir", batched: true, run: (*conn).take,
			summary: "Asks to pass at a cost, under a limit."},
		{name: "weir.peek", arity: -3, key: 1, flags: []string{"readonly", "fast"}, group: "weir", run: (*conn).peek,
			summary: "Says what stands for a key, and changes nothing."},
		{name: "weir.refund", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).refund,
			summary: "Gives back units that were taken and not used."},
		{name: "weir.reset", arity: 3, key: 1, flags: write, group: "weir", run: (*conn).resetKey,
			summary: "Forgets a key."},
	}
}

// A request is what the weir commands ask.
type request struct {
	limiter *weir.Limiter
	key     string
	cost    int64
	timed   bool
	at      time.Time
}

func (c *conn) take() {
	r, ok := c.request(1, true)
	switch {
	case !ok:
	case r.timed:
		c.settle()
		d, err := r.limiter.TakeAt(c.server.ctx, r.key, r.cost, r.at)
		if err == nil {
			c.count(d.Allowed)
		}
		c.reply(d, err)
	default:
		c.add(r.limiter, weirForm, r.key, r.cost)
	}
}

func (c *conn) peek() {
	r, ok := c.request(0, false)
	switch {
	case !ok:
	case r.timed:
		c.reply(r.limiter.PeekAt(c.server.ctx, r.key, r.at))
	default:
		c.reply(r.limiter.Peek(c.server.ctx, r.key))
	}
}

func (c *conn) refund() {
	r, ok := c.request(1, true)
	switch {
	case !ok:
	case r.timed:
		c.reply(r.limiter.RefundAt(c.server.ctx, r.key, r.cost, r.at))
	default:
		c.reply(r.limiter.Refund(c.server.ctx, r.key, r.cost))
	}
}

func (c *conn) resetKey() {
	r, ok := c.request(0, false)
	if !ok {
		return
	}
	if err := r.limiter.Reset(c.server.ctx, r.key); err != nil {
		c.failWith(err)
		return
	}
	c.out.ok()
}

func (c *conn) reply(d weir.Decision, err error) {
	if err != nil {
		c.failWith(err)
		return
	}
	c.out.decision(d)
}

// request reads the arguments key, limit text, and the options: COST if the command has it, and AT. When they make no
// sense it replies with the reason, and returns false.
func (c *conn) request(cost int64, hasCost bool) (r request, ok bool) {
	r.cost = cost
	if r.key, ok = c.key(c.args[1]); !ok {
		return r, false
	}
	if len(c.args) > 3 && !c.options(&r, hasCost) {
		return r, false
	}
	l, err := c.server.options.Limiters.Get(c.args[2])
	if err != nil {
		c.failWith(err)
		return r, false
	}
	r.limiter = l
	return r, true
}

func (c *conn) options(r *request, hasCost bool) bool {
	costs := false
	for args := c.args[3:]; len(args) > 0; args = args[2:] {
		isCost := hasCost && !costs && c.is(args[0], "COST")
		if !isCost && (r.timed || !c.is(args[0], "AT")) {
			c.fail("ERR syntax error at " + excerpt(args[0]) + "; accepted: " + accepted(hasCost))
			return false
		}
		if len(args) == 1 {
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs a value")
			return false
		}
		if isCost {
			if r.cost, costs = c.number("COST", args[1], 0); !costs {
				return false
			}
		} else if r.at, r.timed = c.time(args[1], time.Microsecond); !r.timed {
			return false
		}
	}
	return true
}

func accepted(hasCost bool) string {
	if hasCost {
		return "COST n and AT unix-microseconds, each once"
	}
	return "AT unix-microseconds, once"
}

// key returns an argument as a key. The string is in the input buffer: it is good until the command has been
// carried out. Stores do not keep it.
func (c *conn) key(arg []byte) (key string, ok bool) {
	if most := c.server.options.MaxKey; len(arg) > most {
		c.fail("ERR key is " + strconv.Itoa(len(arg)) + " bytes long; accepted: at most " + strconv.Itoa(most))
		return "", false
	}
	return unsafe.String(unsafe.SliceData(arg), len(arg)), true //nolint:gosec // as the comment says
}
