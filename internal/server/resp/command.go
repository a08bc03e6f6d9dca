package resp

import (
	"strings"

	"github.com/weirlimit/weir/internal/server/access"
)

// maxName bounds the names of commands.
const maxName = 24

// A command is what a name in upper case stands for.
type command struct {
	name    string // in lower case
	arity   int    // arguments, with the name; if negative, at least so many
	key     int    // the position of the key, or 0
	flags   []string
	group   string
	summary string
	stage   stage
	batched bool // it writes its replies when it is settled
	decides bool // it asks the store
	right   access.Right
	public  bool // for connections without a user too
	run     func(*conn)
}

// commands returns the commands by name.
func commands() map[string]*command {
	table := map[string]*command{}
	for _, list := range [][]*command{weirCommands(), checkCommands(), dropInCommands(), connectionCommands(), transactionCommands(), serverCommands(), accessCommands()} {
		for _, c := range list {
			table[strings.ToUpper(c.name)] = c
			c.right, c.public = rightOf(c.name)
			if c.group == "weir" {
				c.stage, c.decides = atExec, true
			}
		}
	}
	return table
}

// execute carries out the command in args.
func (c *conn) execute() {
	c.counts.Commands++
	if c.mute == loud {
		c.dispatch()
	} else {
		c.executeMuted()
	}
}

// executeMuted throws the replies away, unless the command turns them on.
func (c *conn) executeMuted() {
	if len(c.calls) == 0 || !c.calls[0].quiet { // if one is, all are
		c.settle()
	}
	c.loud = len(c.out.buf)
	mute := c.mute
	c.dispatch()
	if c.mute == loud {
		return
	}
	if len(c.calls) == 0 { // those are quiet
		c.settle()
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
		if putOff := cmd.batched || cmd.decides && c.server.options.Waits; !putOff {
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
