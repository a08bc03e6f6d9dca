package resp

import (
	"maps"
	"slices"
)

// catalogue is the COMMAND command, by which clients learn what commands there are.
func (c *conn) catalogue() {
	if len(c.args) == 1 {
		c.describeCommands(nil)
		return
	}
	sub, args := string(c.upper(c.args[1])), c.args[2:]
	switch {
	case sub == "COUNT" && len(args) == 0:
		c.out.integer(int64(len(c.server.commands)))
	case sub == "LIST" && len(args) == 0:
		names := c.server.commandNames()
		c.out.array(len(names))
		for _, name := range names {
			c.out.bulk(c.server.commands[name].name)
		}
	case sub == "INFO":
		c.describeCommands(args)
	case sub == "DOCS":
		c.documentCommands(args)
	default:
		c.fail("ERR unknown subcommand or wrong number of arguments for " + excerpt(c.args[1]) +
			"; accepted: COUNT, DOCS, INFO, LIST")
	}
}

// commandNames returns the names in upper case, in order.
func (s *Server) commandNames() []string { return slices.Sorted(maps.Keys(s.commands)) }

// named returns the commands of these names, nil for those there are not; without names, all.
func (c *conn) named(names [][]byte) []*command {
	var list []*command
	for _, name := range names {
		list = append(list, c.server.commands[string(c.upper(name))])
	}
	if len(names) == 0 {
		for _, name := range c.server.commandNames() {
			list = append(list, c.server.commands[name])
		}
	}
	return list
}

func (c *conn) describeCommands(names [][]byte) {
	list := c.named(names)
	c.out.array(len(list))
	for _, cmd := range list {
		if cmd == nil {
			c.out.nullArray()
		} else {
			c.out.command(cmd)
		}
	}
}

func (r *replies) command(cmd *command) {
	last := int64(cmd.key)
	r.array(10)
	r.bulk(cmd.name)
	r.integer(int64(cmd.arity))
	r.set(len(cmd.flags))
	for _, flag := range cmd.flags {
		r.simple(flag)
	}
	r.integer(last)
	r.integer(last)
	r.integer(min(last, 1)) // the distance between keys
	r.set(1)
	r.simple("@" + cmd.group)
	r.array(0) // tips
	r.array(0) // key specifications
	r.array(0) // subcommands
}

// documentCommands tells of each command once, however often it is named.
func (c *conn) documentCommands(names [][]byte) {
	told := map[*command]bool{nil: true}
	list := slices.DeleteFunc(c.named(names), func(cmd *command) bool {
		before := told[cmd]
		told[cmd] = true
		return before
	})
	c.out.pairs(len(list))
	for _, cmd := range list {
		c.out.bulk(cmd.name)
		c.out.pairs(3)
		for _, text := range []string{"summary", cmd.summary, "since", "1.0.0", "group", cmd.group} {
			c.out.bulk(text)
		}
	}
}
