package resp

import "strconv"

// redisVersion is the version of Redis whose protocol this is, for clients that decide by it what they may send.
const redisVersion = "7.0.0"

func connectionCommands() []*command {
	fast := []string{"noscript", "loading", "stale", "fast"}
	return []*command{
		{name: "ping", arity: -1, flags: fast, group: "connection", run: (*conn).ping, stage: atExec, summary: "Answers PONG, or a message."},
		{name: "echo", arity: 2, flags: fast, group: "connection", run: (*conn).echo, stage: atExec, summary: "Answers a message."},
		{name: "hello", arity: -1, flags: fast, group: "connection", run: (*conn).hello, summary: "Chooses the protocol: 2 or 3."},
		{name: "auth", arity: -2, flags: fast, group: "connection", run: (*conn).auth, summary: "Authenticates the connection as a user."},
		{name: "select", arity: 2, flags: fast, group: "connection", run: (*conn).selectDB, summary: "Chooses database 0, the only one."},
		{name: "client", arity: -2, flags: fast, group: "connection", run: (*conn).client, summary: "Tells of connections, and names this one."},
		{name: "quit", arity: -1, flags: fast, group: "connection", run: (*conn).quit, stage: atOnce, summary: "Closes the connection."},
		{name: "reset", arity: 1, flags: fast, group: "connection", run: (*conn).reset, stage: atOnce, summary: "Makes the connection as it was when new."},
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
