package resp

import (
	"maps"
	"slices"
	"strings"

	"github.com/weirlimit/weir/internal/server/access"
)

// maxName bounds the names of commands.
const maxName = 24

// A command is the code of a name in upper case.
type command struct {
	name    string // in lower case
	arity   int    // arguments, with the name; if negative, at least so many
	key     int    // the position of the key, or 0
	flags   []string
	group   string
	summary string
	stage   stage
	right   access.Right // None: all of them, unless it is for any user or public
	anyUser bool
	public  bool // for connections without a user too
	run     func(*conn)
}

// decides reports whether the command runs an operation, whose reply waits in the queue.
func (cmd *command) decides() bool { return cmd.group == "weir" }

// commands returns the commands by name.
func commands() map[string]*command {
	table := map[string]*command{}
	for _, list := range [][]*command{operationCommands(), dropInCommands(), connectionCommands(), transactionCommands(), serverCommands()} {
		for _, c := range list {
			table[strings.ToUpper(c.name)] = c
			if c.decides() {
				c.stage = atExec
			}
			c.right = rightOf(c)
		}
	}
	return table
}

// rightOf returns the right of a command: all of them, unless its table says otherwise.
func rightOf(cmd *command) access.Right {
	if cmd.right == access.None && !cmd.anyUser && !cmd.public {
		return access.All
	}
	return cmd.right
}

// execute carries out the command in args.
func (c *conn) execute() {
	c.counts.Requests++
	if c.mute == loud {
		c.dispatch()
	} else {
		c.executeMuted()
	}
}

// executeMuted throws the replies away, unless the command turns them on.
func (c *conn) executeMuted() {
	if n := len(c.queue); n > 0 && !c.queue[n-1].quiet {
		c.settle()
	}
	c.loud = len(c.out.buf)
	mute := c.mute
	c.dispatch()
	if c.mute == loud {
		return
	}
	c.dropReplies()
	if mute == skipNext {
		c.mute = loud
	}
}

func (c *conn) dispatch() {
	cmd := c.lookup(c.args[0])
	switch {
	case cmd == nil:
		c.unknown()
	case cmd.arity > 0 && len(c.args) != cmd.arity || len(c.args) < -cmd.arity:
		c.wrongArity(cmd.name)
	case c.session != nil && !c.permits(cmd):
	case c.pending.open && cmd.stage != atOnce:
		c.enqueue(cmd)
	default:
		if !cmd.decides() {
			c.settle()
		}
		cmd.run(c)
	}
}

// lookup returns the command of a name in any case, or nil.
func (c *conn) lookup(name []byte) *command {
	if string(name) == string(c.lastName) {
		return c.last
	}
	cmd := c.server.commands[string(c.upper(name))]
	if cmd != nil {
		c.last, c.lastName = cmd, append(c.lastName[:0], name...)
	}
	return cmd
}

// upper returns a short word in upper case, and nothing for a longer one. It is good until it is called again.
func (c *conn) upper(word []byte) []byte {
	if len(word) > maxName {
		return nil
	}
	for i, b := range word {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		c.name[i] = b
	}
	return c.name[:len(word)]
}

// is reports whether an argument is this word, which is in upper case.
func (c *conn) is(arg []byte, word string) bool { return string(c.upper(arg)) == word }

// fail replies with an error. Replies that are due before it are written first.
func (c *conn) fail(text string) {
	c.settle()
	c.counts.Errors++
	c.pending.broken = true
	c.out.failure(text)
}

func (c *conn) wrongArity(name string) {
	c.fail("ERR wrong number of arguments for '" + name + "' command")
}

func (c *conn) unknown() {
	var text strings.Builder
	text.WriteString("ERR unknown command " + excerpt(c.args[0]) + ", with args beginning with:")
	for _, arg := range c.args[1:min(len(c.args), 5)] {
		text.WriteString(" " + excerpt(arg))
	}
	c.fail(text.String())
}

// A muting says which replies a client does not want.
type muting uint8

const (
	loud     muting = iota
	skipNext        // none to the next command
	silent
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
