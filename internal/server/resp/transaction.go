package resp

import (
	"math"
	"strconv"
)

// A transaction is what comes between MULTI and EXEC. Clients use it to send many commands at once. Each is decided
// by itself, in order, and those of other clients may come in between.
type transaction struct {
	open, broken bool
	queue        []byte // the commands, encoded as the protocol has them
	count        int
	began        int64 // how many commands came before
}

// A stage says when a command is carried out that comes in a transaction.
type stage uint8

const (
	never stage = iota
	atExec
	atOnce
)

func transactionCommands() []*command {
	flags := []string{"noscript", "loading", "stale", "fast"}
	return []*command{
		{name: "multi", anyUser: true, arity: 1, flags: flags, group: "transactions", stage: atOnce, run: (*conn).multi, summary: "Begins a transaction."},
		{name: "exec", anyUser: true, arity: 1, flags: flags, group: "transactions", stage: atOnce, run: (*conn).exec, summary: "Carries out a transaction."},
		{name: "discard", anyUser: true, arity: 1, flags: flags, group: "transactions", stage: atOnce, run: (*conn).discard, summary: "Forgets a transaction."},
	}
}

func (c *conn) multi() {
	if c.pending.open {
		c.fail("ERR MULTI calls can not be nested")
		return
	}
	c.pending = transaction{open: true, began: c.counts.Requests}
	c.out.ok()
}

func (c *conn) discard() {
	if !c.pending.open {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.forgetTransaction()
	c.out.ok()
}

func (c *conn) forgetTransaction() {
	if c.pending.queue != nil {
		c.account(-int64(cap(c.pending.queue)))
		c.unpin()
	}
	c.pending = transaction{}
}

// enqueue queues the command in args. After an invalid command none is carried out, and none is
// kept.
func (c *conn) enqueue(cmd *command) {
	p := &c.pending
	switch {
	case cmd.stage != atExec:
		c.fail("ERR " + cmd.name + " is not for transactions; accepted: WEIR.*, CL.THROTTLE, THROTTLE, RL.*, PING, ECHO")
		return
	case p.broken:
		c.out.simple("QUEUED")
		return
	}
	before := cap(p.queue)
	p.queue = appendCommand(p.queue, c.args)
	grown := int64(cap(p.queue) - before)
	p.count++
	if most := c.server.options.MaxCommand; len(p.queue) > most || !c.account(grown) {
		c.account(-int64(before))
		p.queue = nil
		c.fail("ERR the transaction is too long; accepted: " + strconv.Itoa(most) + " bytes, of all clients together " +
			strconv.FormatInt(c.server.options.MaxBuffered, 10))
		return
	}
	c.out.simple("QUEUED")
}

func appendCommand(b []byte, args [][]byte) []byte {
	r := replies{buf: b}
	r.array(len(args))
	for _, arg := range args {
		r.bytes(arg)
	}
	return r.buf
}

// exec replies with an array of what the commands reply.
func (c *conn) exec() {
	p := c.pending
	defer c.forgetTransaction()
	switch {
	case !p.open:
		c.fail("ERR EXEC without MULTI")
		return
	case p.broken:
		c.fail("EXECABORT Transaction discarded because of previous errors.")
		return
	}
	c.pending.open = false // but the queue is still held
	c.out.array(p.count)
	parser := parser{maxCommand: math.MaxInt32, maxArgs: mostArgs} // one that takes what it has taken before
	for len(p.queue) > 0 && !c.closing {
		args, size, _, _ := parser.next(p.queue, c.args[:0])
		c.args, p.queue = args, p.queue[size:]
		c.dispatch()
		if c.mute == loud {
			c.flushLong()
		} else if len(c.out.buf)-c.loud >= flushAt {
			c.settle()
			c.dropReplies()
		}
	}
	c.settle()
}
