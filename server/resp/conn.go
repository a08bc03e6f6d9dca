package resp

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/server/limiters"
)

// A conn is a client's connection. All but what is marked belongs to the goroutine that serves it.
type conn struct {
	server  *Server
	net     net.Conn
	id      int64
	created time.Time

	in         []byte // what was received; in[start:end] is yet to be parsed
	start, end int
	need       int // how much of that there must be before parsing is of use
	args       [][]byte
	out        replies
	held       int64 // of out, in the server's account of what is long
	batch      batch
	calls      []call // put off, where the store waits for an engine
	pending    transaction

	last         *command // the command of the name that came last
	lastName     []byte
	name         [maxName]byte   // room for a name in upper case
	text         []byte          // room for a limit text
	throttled    *limiters.Bound // what is bound for lastThrottle
	lastThrottle throttle
	mute         muting
	closing      bool
	counts       Counts
	waited       time.Duration // for the client to read, since a shutdown began

	// These are read by others.
	about  atomic.Pointer[about]
	shown  [5]atomic.Int64
	rounds atomic.Uint64 // rounds of reading, running and writing
	writes atomic.Uint64 // odd while replies are being written

	// These belong to sweep.
	seen   activity
	seenAt time.Time
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	now := time.Now()
	c := &conn{server: s, net: nc, id: id, created: now, seenAt: now}
	c.about.Store(&about{})
	return c
}

// serve reads what has arrived, runs every command in it, and writes all the replies, until the client or
// the server ends it.
func (c *conn) serve() {
	defer c.close()
	for !c.closing {
		c.makeRoom()
		if c.closing {
			break
		}
		n, err := c.net.Read(c.in[c.end:])
		c.end += n
		c.run()
		c.publish()
		if !c.flush() || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		c.closing = c.closing || err != nil
	}
	c.flush()
	c.linger()
}

// run carries out every command that has arrived.
func (c *conn) run() {
	for !c.closing && c.end-c.start >= max(c.need, 1) {
		args, size, need, err := c.server.parser.next(c.in[c.start:c.end], c.args[:0])
		c.args, c.need = args, need
		if err != nil {
			c.fail("ERR " + err.Error())
			c.closing = true
			break
		}
		if size == 0 {
			break
		}
		c.start += size
		if len(args) > 0 {
			c.execute()
		}
		c.flushLong()
	}
	c.settle()
}

// flushLong writes the replies if they are many, and if they are not to be thrown away.
func (c *conn) flushLong() {
	if len(c.out.buf) >= flushAt && c.mute == loud {
		c.settle()
		c.closing = !c.flush() || c.closing
	}
}

// flush writes the replies. It returns false if the client does not take them any more.
func (c *conn) flush() bool {
	if len(c.out.buf) == 0 {
		return true
	}
	if !c.holdReplies(cap(c.out.buf)) {
		c.server.countCut()
		c.out.buf = nil
		return false
	}
	err := c.send()
	if c.out.buf = c.out.buf[:0]; cap(c.out.buf) > usualOutput {
		c.out.buf = nil
	}
	c.holdReplies(0)
	return err == nil
}

// send writes the replies, and lets sweep see how long that takes.
func (c *conn) send() error {
	begin := c.drainBegins()
	c.writes.Add(1)
	_, err := c.net.Write(c.out.buf)
	c.writes.Add(1)
	c.drainLater(begin)
	return err
}

func (c *conn) close() {
	_ = c.net.Close()
	c.hold(0)
	c.holdReplies(0)
	c.forgetTransaction()
	c.in = nil
	c.publish()
	c.server.forget(c)
}
