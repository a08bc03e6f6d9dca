package resp

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// operationCommands returns the commands of the operations.
func operationCommands() (list []*command) {
	for _, o := range operation.List {
		cmd := &command{name: o.Command, flags: writes, group: "weir", summary: o.Summary, right: o.Right}
		if o.Reads {
			cmd.flags = reads
		}
		switch o.Form {
		case operation.Limits:
			cmd.arity, cmd.key, cmd.run = -3, 1, func(c *conn) { c.takeAll(o) }
		case operation.Request:
			cmd.arity, cmd.run = -1, func(c *conn) { c.check(o) }
		case operation.Settlement:
			cmd.arity, cmd.run = 2, func(c *conn) { c.settlement(o) }
			if o.Settles() {
				cmd.arity = -3
			}
		default:
			cmd.arity, cmd.key, cmd.run = -3, 1, func(c *conn) { c.oneLimit(o) }
		}
		list = append(list, cmd)
	}
	return list
}

var writes, reads = []string{"write", "fast"}, []string{"readonly", "fast"}

// oneLimit is a command with the arguments key, limit text, and the options of its operation.
func (c *conn) oneLimit(o *operation.Operation) {
	k, t := c.newCall(o), times{}
	var ok bool
	if k.Key, ok = c.key(c.args[1]); !ok {
		return
	}
	if len(c.args) > 3 {
		if _, ok = c.options(k, &t, c.args[3:], o.Accepts); !ok || !c.times(k, &t) {
			return
		}
	}
	if !c.complete(k, o.Requires) || !c.permitsCall(k) || !c.bind(k, c.args[2]) {
		return
	}
	switch {
	case o == take && k.Given&^(operation.Cost|operation.Name|operation.Debt) == 0:
		c.put(pending{bound: k.Bound, key: k.Key, cost: k.Op.Cost})
	case o.Kind != algorithm.Cancel || c.permitsCall(k): // which depends on the limit
		c.do(k)
	}
}

// bind binds the limit text of a call.
func (c *conn) bind(k *call, limit []byte) (ok bool) {
	var err error
	if k.Bound, err = c.server.options.Limiters.Bind(bytesOf(k.Name), limit, k.Given&operation.Debt != 0); err != nil {
		c.failWith(err, "")
	}
	return err == nil
}

// takeAll is WEIR.TAKEALL key limit [COST n] [NAME name] [ID id LIFE time] [AND key limit …] [AT time] [NS] [TIME] [ONERROR deny|allow|local].
func (c *conn) takeAll(o *operation.Operation) {
	const ofPart, reserved = operation.Cost | operation.Name | operation.ID | operation.Life, operation.ID | operation.Life
	k, t := c.newCall(o), times{}
	var lives [][]byte
	for args := c.args[1:]; args != nil; {
		if len(args) < 2 {
			c.fail("ERR syntax error: AND needs a key and a limit")
			return
		}
		var ok bool
		if k.Key, ok = c.key(args[0]); !ok {
			return
		}
		limit := args[1]
		k.Given, k.Name, k.Op = k.Given&^(ofPart|operation.And), "", algorithm.Op{Cost: 1}
		if args, ok = c.options(k, &t, args[2:], o.Accepts); !ok {
			return
		}
		if k.Given&reserved != 0 && !c.complete(k, reserved|operation.Name) || !c.permitsCall(k) || !c.bind(k, limit) {
			return
		}
		if other, conflict := k.AddPart(); conflict {
			c.fail("ERR limit of NAME " + excerpt(bytesOf(k.Name)) + " is " + other.String() + " and " + k.Bound.Limit.String() +
				" for one key; accepted: one limit for each name")
			return
		}
		lives = append(lives, t.life)
	}
	k.Given &^= operation.Life
	if !c.times(k, &t) || !c.lives(k, lives) {
		return
	}
	if k.Given&operation.OnError != 0 && slices.ContainsFunc(k.Parts, func(p operation.Part) bool { return p.ID != 0 }) {
		c.fail("ERR ONERROR is given with ID; accepted: one of them, because the store alone makes reservations")
		return
	}
	c.do(k)
}

// lives reads the lives of the reservations of parts, when the unit is known.
func (c *conn) lives(k *call, lives [][]byte) (ok bool) {
	for i := range k.Parts {
		if p := &k.Parts[i]; p.ID != 0 {
			if p.Life, ok = c.numberIn("LIFE", lives[i], operation.Life.Span(k.unit())); !ok {
				return false
			}
			p.Life *= int64(k.unit())
		}
	}
	return true
}

// times are the texts of times, which are read when their unit is known.
type times struct{ at, end, life []byte }

// options reads the words after a limit, and returns the words after AND, or nil without it.
func (c *conn) options(k *call, t *times, args [][]byte, accepts operation.Argument) (rest [][]byte, ok bool) {
	for len(args) > 0 {
		o := c.option(args[0])
		switch {
		case o&accepts == 0 || o&k.Given != 0:
			c.fail("ERR syntax error at " + excerpt(args[0]) + "; accepted: " + accepts.Accepted())
			return nil, false
		case o == operation.And:
			return args[1:], true
		case !o.HasValue():
			k.Set(o, 1, time.Nanosecond)
			args = args[1:]
			continue
		case len(args) == 1:
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs a value")
			return nil, false
		}
		if !c.value(k, t, o, args[1]) {
			return nil, false
		}
		k.Given |= o
		args = args[2:]
	}
	return nil, true
}

// option returns the argument of a word in any case, or 0. A map would be slower.
func (c *conn) option(word []byte) operation.Argument {
	switch string(c.upper(word)) {
	case "COST":
		return operation.Cost
	case "AT":
		return operation.At
	case "NAME":
		return operation.Name
	case "END":
		return operation.End
	case "NS":
		return operation.NS
	case "TIME":
		return operation.Time
	case "DEBT":
		return operation.Debt
	case "ID":
		return operation.ID
	case "LIFE":
		return operation.Life
	case "LATE":
		return operation.Late
	case "AND":
		return operation.And
	case "ONERROR":
		return operation.OnError
	}
	return 0
}

func (c *conn) value(k *call, t *times, o operation.Argument, value []byte) (ok bool) {
	switch o {
	case operation.Cost:
		k.Op.Cost, ok = c.numberIn("COST", value, o.Span(0))
		return ok
	case operation.At:
		t.at = value
	case operation.End:
		t.end = value
	case operation.Life:
		t.life = value
	case operation.ID:
		if k.Op.ID, ok = parseInt(value); !ok || k.Op.ID == 0 {
			c.fail("ERR ID is " + excerpt(value) + "; accepted: a whole number of 64 bits, other than 0")
			return false
		}
	case operation.OnError:
		var err error
		if k.OnError, err = store.ParseOnError(string(value)); err != nil {
			c.fail("ERR ONERROR is " + excerpt(value) + "; accepted: " + store.OnErrorAccepted)
			return false
		}
	default:
		k.Name, ok = c.text("NAME", value)
		return ok
	}
	return true
}

// times reads the times of a call.
func (c *conn) times(k *call, t *times) bool {
	for _, each := range [...]struct {
		a    operation.Argument
		name string
		text []byte
	}{{operation.At, "AT", t.at}, {operation.End, "END", t.end}, {operation.Life, "LIFE", t.life}} {
		if k.Given&each.a != 0 && !c.time(k, each.a, each.name, each.text, k.unit()) {
			return false
		}
	}
	return true
}

// time reads a time in a unit. That of AT is in units since 1970, if clients may set the time.
func (c *conn) time(k *call, a operation.Argument, name string, value []byte, unit time.Duration) bool {
	if a == operation.At && !c.server.options.TrustClientTime {
		c.fail("ERR AT is refused: this server does not trust the time of its clients (weir serve --trust-client-time does)")
		return false
	}
	n, ok := c.numberIn(name, value, a.Span(unit))
	if !ok {
		return false
	}
	if ok = k.Set(a, n, unit); !ok {
		c.failWith(store.ErrTime, "")
	}
	return ok
}

// complete reports whether a call has all required arguments, and replies otherwise.
func (c *conn) complete(k *call, required operation.Argument) bool {
	a, accepted := k.Missing(required)
	if a == 0 {
		return true
	}
	text := a.Texts(operation.Words[:])[0]
	name, _, _ := strings.Cut(text, " ")
	c.fail("ERR " + name + " is missing; accepted: " + text + ", " + accepted)
	return false
}

// permitsCall reports whether the user has the right to a call, and replies otherwise.
func (c *conn) permitsCall(k *call) bool {
	if c.session == nil {
		return true
	}
	switch right := c.server.options.Missing(&k.Call, c.user); {
	case right == access.None:
		return true
	case !c.user.Has(right):
		c.noPermission(c.last.name)
	default:
		c.fail(noKey)
	}
	return false
}

// key returns an argument as a key.
func (c *conn) key(arg []byte) (key string, ok bool) { return c.text("key", arg) }

// text returns an argument as a string of up to MaxKey bytes. The string is in the input buffer: it is
// good until the command has been carried out. Stores do not keep it.
func (c *conn) text(name string, arg []byte) (text string, ok bool) {
	if most := c.server.options.MaxKey; len(arg) > most {
		c.fail("ERR " + name + " is " + strconv.Itoa(len(arg)) + " bytes long; accepted: at most " + strconv.Itoa(most))
		return "", false
	}
	return unsafe.String(unsafe.SliceData(arg), len(arg)), true //nolint:gosec // as the comment says
}

// bytesOf returns the bytes of a string, not to be changed.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) } //nolint:gosec // for reading

// numberIn reads an argument that is a number of a span, and replies if it is none.
func (c *conn) numberIn(name string, arg []byte, in operation.Span) (n int64, ok bool) {
	n, ok = parseInt(arg)
	if !ok || !in.Has(n) {
		c.fail("ERR " + name + " is " + excerpt(arg) + "; accepted: " + in.String())
		return 0, false
	}
	return n, true
}

// parseInt reads a whole number of 64 bits: digits, after a minus sign or not.
func parseInt(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(text) > 0 && text[0] == '-' {
		digits, negative = text[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var sum uint64 // 19 digits fit
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		sum = sum*10 + uint64(c)
	}
	switch {
	case negative && sum <= -math.MinInt64:
		return int64(-sum), true
	case !negative && sum <= math.MaxInt64:
		return int64(sum), true
	}
	return 0, false
}

// excerpt quotes what a client sent, as far as it is short.
func excerpt(b []byte) string {
	if len(b) > 64 {
		return strconv.Quote(string(b[:64])) + "..."
	}
	return strconv.Quote(string(b))
}
