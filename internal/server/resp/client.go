package resp

import (
	"slices"
	"time"
)

// about is what a client says of itself.
type about struct {
	user                          string // "" for a connection without one
	name, library, libraryVersion string
	three                         bool // it chose RESP3
}

// mostAbout bounds each of the texts, in bytes.
const mostAbout = 256

// client is the CLIENT command.
func (c *conn) client() { //nolint:cyclop // a case for each subcommand
	sub, args := string(c.upper(c.args[1])), c.args[2:]
	switch {
	case sub == "ID" && len(args) == 0:
		c.out.integer(c.id)
	case sub == "GETNAME" && len(args) == 0:
		c.getName()
	case sub == "SETNAME" && len(args) == 1:
		if c.setName(args[0]) {
			c.out.ok()
		}
	case sub == "SETINFO" && len(args) == 2:
		c.setInfo(args[0], args[1])
	case sub == "INFO" && len(args) == 0:
		c.out.text(c.describe(time.Now(), 0))
	case sub == "LIST":
		c.listClients(args)
	case sub == "REPLY" && len(args) == 1:
		c.clientReply(args[0])
	case (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 1:
		c.oneOf(args[0], "ON", "OFF") // nothing is ever evicted or touched for a client
	case sub == "TRACKING" && len(args) >= 1:
		c.oneOf(args[0], "ON", "OFF") // nothing that a client may keep is ever changed by another
	case sub == "CACHING" && len(args) == 1:
		c.oneOf(args[0], "YES", "NO")
	default:
		c.fail("ERR unknown subcommand or wrong number of arguments for " + excerpt(c.args[1]) +
			"; accepted: ID, GETNAME, SETNAME, SETINFO, INFO, LIST, REPLY, NO-EVICT, NO-TOUCH, TRACKING, CACHING")
	}
}

func (c *conn) getName() {
	if name := c.about.Load().name; name != "" {
		c.out.bulk(name)
	} else {
		c.out.null()
	}
}

func (c *conn) setName(name []byte) bool {
	if !printable(name) {
		c.fail("ERR Client names cannot contain spaces, newlines or special characters, or have more than " +
			decimal(mostAbout) + " bytes.")
		return false
	}
	a := *c.about.Load()
	a.name = string(name)
	c.about.Store(&a)
	return true
}

func (c *conn) setInfo(attribute, value []byte) {
	a := *c.about.Load()
	switch {
	case !printable(value):
		c.fail("ERR " + excerpt(attribute) + " cannot contain spaces, newlines or special characters, or have more than " +
			decimal(mostAbout) + " bytes.")
		return
	case c.is(attribute, "LIB-NAME"):
		a.library = string(value)
	case c.is(attribute, "LIB-VER"):
		a.libraryVersion = string(value)
	default:
		c.fail("ERR Unrecognized option " + excerpt(attribute))
		return
	}
	c.about.Store(&a)
	c.out.ok()
}

func printable(text []byte) bool {
	return len(text) <= mostAbout && !slices.ContainsFunc(text, func(b byte) bool { return b < '!' || b > '~' })
}

// oneOf answers OK to either word. There is nothing to do.
func (c *conn) oneOf(arg []byte, one, other string) {
	if c.is(arg, one) || c.is(arg, other) {
		c.out.ok()
		return
	}
	c.fail("ERR syntax error: " + excerpt(arg) + "; accepted: " + one + ", " + other)
}

// clientReply turns replies off, or on, or off for the next command.
func (c *conn) clientReply(arg []byte) {
	switch {
	case c.is(arg, "ON"):
		c.mute = loud
		c.out.ok()
	case c.is(arg, "OFF"):
		c.mute = silent
	case c.is(arg, "SKIP"):
		c.mute = max(c.mute, skipNext)
	default:
		c.fail("ERR syntax error")
	}
}
