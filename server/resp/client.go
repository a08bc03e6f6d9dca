package resp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// about is what a client says of itself.
type about struct{ name, library, libraryVersion string }

// mostAbout bounds each part of it, in bytes, and mostDescription the line about a client.
const (
	mostAbout       = 256
	mostDescription = 512 + 3*mostAbout
)

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
		c.out.text(c.describe(time.Now()))
	case sub == "LIST":
		c.listClients(args)
	case sub == "REPLY" && len(args) == 1:
		c.clientReply(args[0])
	case (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 1:
		c.onOrOff(args[0])
	default:
		c.fail("ERR unknown subcommand or wrong number of arguments for " + excerpt(c.args[1]) +
			"; accepted: ID, GETNAME, SETNAME, SETINFO, INFO, LIST, REPLY, NO-EVICT, NO-TOUCH")
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

func (c *conn) onOrOff(arg []byte) {
	if c.is(arg, "ON") || c.is(arg, "OFF") {
		c.out.ok() // nothing is ever evicted or touched for a client
		return
	}
	c.fail("ERR syntax error")
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

// listClients accepts no filter but TYPE normal, which all clients are.
func (c *conn) listClients(args [][]byte) {
	if len(args) > 0 && (len(args) != 2 || !c.is(args[0], "TYPE") || !c.is(args[1], "NORMAL")) {
		c.fail("ERR syntax error; accepted: CLIENT LIST [TYPE normal]")
		return
	}
	all := c.server.clients()
	if !c.holdReplies(2 * len(all) * mostDescription) { // the list, and the reply that it is copied to
		c.fail("ERR too many long replies are waiting to be read, try again")
		return
	}
	var list strings.Builder
	for now := time.Now(); len(all) > 0; all = all[1:] {
		list.WriteString(all[0].describe(now))
	}
	c.out.text(list.String())
}

// clients returns the connections in the order in which they came.
func (s *Server) clients() []*conn {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return all
}

// describe returns a line about the connection. It may be called for the connection of another goroutine.
func (c *conn) describe(now time.Time) string {
	a := c.about.Load()
	return fmt.Sprintf("id=%d addr=%v laddr=%v name=%s age=%d db=0 tot-cmds=%d lib-name=%s lib-ver=%s\n",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), a.name, int(now.Sub(c.created).Seconds()),
		c.published().Commands, a.library, a.libraryVersion)
}
