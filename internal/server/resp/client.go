package resp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
)

// redisVersion is the version of Redis whose protocol this is, for clients that decide by it what they may send.
const redisVersion = "7.0.0"

func connectionCommands() []*command {
	fast := []string{"noscript", "loading", "stale", "fast"}
	return []*command{
		{name: "ping", anyUser: true, arity: -1, flags: fast, group: "connection", run: (*conn).ping, stage: atExec, summary: "Answers PONG, or a message."},
		{name: "echo", anyUser: true, arity: 2, flags: fast, group: "connection", run: (*conn).echo, stage: atExec, summary: "Answers a message."},
		{name: "hello", public: true, arity: -1, flags: fast, group: "connection", run: (*conn).hello, summary: "Chooses the protocol: 2 or 3."},
		{name: "auth", public: true, arity: -2, flags: fast, group: "connection", run: (*conn).auth, summary: "Authenticates the connection as a user."},
		{name: "select", anyUser: true, arity: 2, flags: fast, group: "connection", run: (*conn).selectDB, summary: "Chooses database 0, the only one."},
		{name: "client", anyUser: true, arity: -2, flags: fast, group: "connection", run: (*conn).client, summary: "Tells of connections, and names this one."},
		{name: "quit", public: true, arity: -1, flags: fast, group: "connection", run: (*conn).quit, stage: atOnce, summary: "Closes the connection."},
		{name: "reset", public: true, arity: 1, flags: fast, group: "connection", run: (*conn).reset, stage: atOnce, summary: "Makes the connection as it was when new."},
	}
}

func (c *conn) ping() {
	switch len(c.args) {
	case 1:
		c.out.simple("PONG")
	case 2:
		c.out.bytes(c.args[1])
	default:
		c.wrongArity("ping")
	}
}

func (c *conn) echo() { c.out.bytes(c.args[1]) }

func (c *conn) quit() {
	c.out.ok()
	c.closing = true
}

func (c *conn) reset() {
	c.out.three, c.mute = false, loud
	c.forgetTransaction()
	c.about.Store(&about{})
	c.logout()
	c.out.simple("RESET")
}

func (c *conn) selectDB() {
	switch n, ok := parseInt(c.args[1]); {
	case !ok:
		c.fail("ERR invalid DB index")
	case n != 0:
		c.fail("ERR DB index is out of range")
	default:
		c.out.ok()
	}
}

// hello is HELLO [2|3 [AUTH user password] [SETNAME name]].
func (c *conn) hello() {
	three := c.out.three
	if len(c.args) == 1 && c.session != nil && c.user == nil {
		c.fail(helloFirst)
		return
	}
	if len(c.args) > 1 {
		switch version, ok := parseInt(c.args[1]); {
		case !ok:
			c.fail("ERR Protocol version is not an integer or out of range")
			return
		case version != 2 && version != 3:
			c.fail("NOPROTO unsupported protocol version")
			return
		default:
			three = version == 3
		}
		if !c.helloOptions(c.args[2:]) {
			return
		}
	}
	c.speak(three)
	c.greet()
}

// speak goes over to RESP3, or back.
func (c *conn) speak(three bool) {
	c.out.three = three
	a := *c.about.Load()
	a.three = three
	c.about.Store(&a)
}

// helloOptions authenticates the connection, and then sets its name.
func (c *conn) helloOptions(args [][]byte) bool {
	var login, name [][]byte
	for len(args) > 0 {
		switch {
		case len(args) >= 3 && c.is(args[0], "AUTH"):
			login, args = args[1:3], args[3:]
		case len(args) >= 2 && c.is(args[0], "SETNAME"):
			name, args = args[1:2], args[2:]
		default:
			c.fail("ERR Syntax error in HELLO option " + excerpt(args[0]))
			return false
		}
	}
	switch {
	case login != nil && !c.authenticate(string(login[0]), string(login[1])):
		return false
	case c.session != nil && c.user == nil:
		c.fail(helloFirst)
		return false
	}
	return name == nil || c.setName(name[0])
}

func (c *conn) greet() {
	version := int64(2)
	if c.out.three {
		version = 3
	}
	c.out.pairs(8)
	for _, pair := range [][2]string{{"server", "weir"}, {"version", redisVersion}, {"weir_version", c.server.options.Version}} {
		c.out.bulk(pair[0])
		c.out.bulk(pair[1])
	}
	c.out.bulk("proto")
	c.out.integer(version)
	c.out.bulk("id")
	c.out.integer(c.id)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.out.bulk(pair[0])
		c.out.bulk(pair[1])
	}
	c.out.bulk("modules")
	c.out.array(0)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

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

// mostDescription bounds the line about a client, in bytes.
const mostDescription = 640 + 4*mostAbout

// listClients accepts no filter but TYPE normal, which all clients are.
func (c *conn) listClients(args [][]byte) {
	if len(args) > 0 && (len(args) != 2 || !c.is(args[0], "TYPE") || !c.is(args[1], "NORMAL")) {
		c.fail("ERR syntax error; accepted: CLIENT LIST [TYPE normal]")
		return
	}
	if c.session != nil && !c.user.Has(access.Admin) {
		c.noPermission("client|list")
		return
	}
	all := c.server.clients()
	if !c.holdReplies(2 * len(all) * mostDescription) { // the list, and the reply that it is copied to
		c.fail("ERR too many long replies are waiting to be read, try again")
		return
	}
	var list strings.Builder
	for now := time.Now(); len(all) > 0; all = all[1:] {
		idle := time.Duration(0)
		if all[0] != c {
			idle = all[0].idle(now)
		}
		list.WriteString(all[0].describe(now, idle))
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

// idle returns for how long sweep has seen the connection do nothing, which may be some seconds too little. It may
// be called for the connection of another goroutine.
func (c *conn) idle(now time.Time) time.Duration {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.seen != (activity{c.rounds.Load(), c.writes.Load()}) {
		return 0
	}
	return max(0, now.Sub(c.seenAt))
}

// describe returns a line about the connection, with the fields that Redis has, because clients miss them. Those
// of what there isn't here, and of what only the connection's goroutine knows, are as of a new connection. It may be
// called for the connection of another goroutine.
func (c *conn) describe(now time.Time, idle time.Duration) string {
	a, protocol := c.about.Load(), 2
	if a.three {
		protocol = 3
	}
	return fmt.Sprintf("id=%d addr=%v laddr=%v fd=-1 name=%s age=%d idle=%d flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0"+
		" qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=NULL user=%s"+
		" redir=-1 resp=%d lib-name=%s lib-ver=%s tot-cmds=%d\n",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), a.name, int(now.Sub(c.created).Seconds()), int(idle.Seconds()),
		c.userName(a), protocol, a.library, a.libraryVersion, c.shown.Counts().Requests)
}
