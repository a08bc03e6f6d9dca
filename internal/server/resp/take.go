package resp

import (
	"strconv"
	"unsafe"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/store"
)

func weirCommands() []*command {
	write := []string{"write", "fast"}
	return []*command{
		{name: "weir.take", arity: -3, key: 1, flags: write, group: "weir", batched: true, run: (*conn).take,
			summary: "Asks to pass at a cost, under a limit."},
		{name: "weir.takeupto", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).takeUpTo,
			summary: "Takes as many units as there is room for, up to a cost."},
		{name: "weir.takeall", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).takeAll,
			summary: "Asks to pass several limits together: all are charged, or none."},
		{name: "weir.peek", arity: -3, key: 1, flags: []string{"readonly", "fast"}, group: "weir", run: (*conn).peek,
			summary: "Says what stands for a key, and changes nothing."},
		{name: "weir.refund", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).refund,
			summary: "Gives back units that were taken and not used."},
		{name: "weir.cancel", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).cancel,
			summary: "Gives back the units of one take, as far as they have not come back by themselves."},
		{name: "weir.renew", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).renew,
			summary: "Takes units of a concurrent limit for another lease, in place of those of an earlier take."},
		{name: "weir.reserve", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).reserve,
			summary: "Takes units that can be settled at what the work really cost."},
		{name: "weir.commit", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).commit,
			summary: "Settles a reservation."},
		{name: "weir.reset", arity: -3, key: 1, flags: write, group: "weir", run: (*conn).resetKey,
			summary: "Forgets a key."},
	}
}

const (
	usual = nameOption | debtOption | atOption | nsOption | timeOption
	costs = usual | costOption
	takes = costs | onErrorOption
	held  = costs&^debtOption | idOption
)

func (c *conn) take() {
	r, ok := c.request(1, takes)
	switch {
	case !ok:
	case r.given&(atOption|timeOption|nsOption|onErrorOption) == 0 && !c.server.options.Waits:
		c.add(r.bound, weirForm, r.key, r.cost)
	default:
		k := r.call(algorithm.Take)
		k.counts = true
		c.do(k)
	}
}

func (c *conn) takeUpTo() {
	if r, ok := c.request(1, takes); ok {
		k := r.call(algorithm.TakeUpTo)
		k.counts, k.granted = true, true
		c.do(k)
	}
}

func (c *conn) peek() {
	if r, ok := c.request(0, usual|onErrorOption); ok {
		c.do(r.call(algorithm.Take))
	}
}

func (c *conn) refund() {
	if r, ok := c.request(1, costs); ok {
		k := r.call(algorithm.Refund)
		k.audited = audit.Refund
		c.do(k)
	}
}

func (c *conn) cancel() {
	r, ok := c.request(1, costs|endOption)
	if !ok {
		return
	}
	k := r.call(algorithm.Cancel)
	if r.bound.Limit.Algorithm != algorithm.Concurrent {
		if k.audited = audit.Cancel; !c.permitsRefund(k.name, r.key) {
			return
		}
	}
	k.op.End, k.granted = r.end, true
	c.do(k)
}

func (c *conn) renew() {
	r, ok := c.request(1, costs|endOption)
	if !ok {
		return
	}
	k := r.call(algorithm.Renew)
	k.op.End, k.counts, k.granted = r.end, true, true
	c.do(k)
}

func (c *conn) reserve() {
	r, ok := c.request(1, held|lifeOption)
	if !ok {
		return
	}
	k := r.call(algorithm.Reserve)
	k.counts, k.granted = true, true
	c.do(k)
}

func (c *conn) commit() {
	r, ok := c.request(1, held|lateOption)
	if !ok {
		return
	}
	k := r.call(algorithm.Commit)
	k.op.Late, k.granted = r.given&lateOption != 0, true
	c.do(k)
}

// resetKey answers OK, or if the client asks for the time, with what stands then.
func (c *conn) resetKey() {
	r, ok := c.request(0, usual)
	if !ok {
		return
	}
	k := r.call(algorithm.Reset)
	k.audited = audit.Reset
	if !k.stamped {
		k.form = okForm
	}
	c.do(k)
}

func (r *request) call(kind algorithm.Kind) call {
	return call{
		bound: r.bound, key: r.key, op: algorithm.Op{Kind: kind, Cost: r.cost, ID: r.id, Life: r.life}, at: r.at,
		form: r.form(), name: text(r.name), stamped: r.given&timeOption != 0, onError: r.choice(),
	}
}

// choice returns the decision while the store fails that the command has given, or nil.
func (r *request) choice() *store.OnError {
	if r.given&onErrorOption == 0 {
		return nil
	}
	on := r.onError // and not &r.onError: r would be on the heap for each command
	return &on
}

func (r *request) form() form {
	if r.given&nsOption != 0 {
		return nanosecondForm
	}
	return weirForm
}

// request reads the arguments key, limit text, and the options that the command has. When they make no
// sense it replies with the reason, and returns false.
func (c *conn) request(cost int64, options option) (r request, ok bool) {
	r.cost, r.at = cost, store.OwnClock
	if r.key, ok = c.key(c.args[1]); !ok {
		return r, false
	}
	if len(c.args) > 3 {
		if _, ok = c.options(&r, c.args[3:], options); !ok || !c.timeOf(&r) {
			return r, false
		}
	}
	if !c.complete(&r, options) || !c.permitsKey(c.last.right, text(r.name), r.key) {
		return r, false
	}
	var err error
	if r.bound, err = c.server.options.Limiters.Bind(r.name, c.args[2], r.given&debtOption != 0); err != nil {
		c.failWith(err)
		return r, false
	}
	return r, true
}

// complete reports whether all options are there that the command can't do without, and replies if one is not.
func (c *conn) complete(r *request, options option) bool {
	missing := options &^ r.given
	switch {
	case missing&endOption != 0:
		c.fail("ERR END is missing; accepted: END time, the time of the take and its reset_after")
	case missing&idOption != 0:
		c.fail("ERR ID is missing; accepted: ID id, a number that the client chooses at random")
	case missing&lifeOption != 0:
		c.fail("ERR LIFE is missing; accepted: LIFE time, for how long the reservation can be settled")
	case options&idOption != 0 && len(r.name) == 0:
		c.fail(nameMissing)
	default:
		return true
	}
	return false
}

const nameMissing = "ERR NAME is missing; accepted: NAME name, of the limiter under which reservations are kept"

// key returns an argument as a key. The string is in the input buffer: it is good until the command has been
// carried out. Stores do not keep it.
func (c *conn) key(arg []byte) (key string, ok bool) {
	if most := c.server.options.MaxKey; len(arg) > most {
		c.fail("ERR key is " + strconv.Itoa(len(arg)) + " bytes long; accepted: at most " + strconv.Itoa(most))
		return "", false
	}
	return text(arg), true
}

// text returns an argument as a string, which is good until the command has been carried out.
func text(arg []byte) string {
	return unsafe.String(unsafe.SliceData(arg), len(arg)) //nolint:gosec // as the comment says
}
