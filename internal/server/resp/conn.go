package resp

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

// A conn is a client's connection. All but what is marked belongs to the goroutine that serves it.
type conn struct {
	server  *Server
	net     net.Conn
	source  *guard.Source
	id      int64
	created time.Time

	in         []byte // what was received; in[start:end] is yet to be parsed
	start, end int
	need       int // how much of that there must be before parsing is of use
	args       [][]byte
	out        replies
	held       int64     // of out, in the server's account of what is long
	queue      []pending // decisions whose replies are not written yet
	queueBytes int       // of the queue; beyond usualQueue they are in the server's account
	scratch    *call     // of newCall; nil: there is none yet
	pending    transaction
	session    *access.Session // nil: there are no users
	user       *access.User    // of the session, as of the last command

	last         *command // the command of the name that came last
	lastName     []byte
	name         [maxName]byte   // room for a name in upper case
	limit        []byte          // room for a limit text
	requests     []store.KeyCost // room for takes that are decided together
	decisions    []algorithm.Decision
	throttled    *store.Bound // what is bound for lastThrottle
	lastThrottle throttle
	mute         muting
	loud         int // bytes of out for the client, during a command whose replies are dropped
	closing      bool
	counts       operation.Counts
	decided      latency.Batch // since began
	began        time.Time     // the end of the last read, or of a long write after it
	waited       time.Duration // for the client to read, since a shutdown began

	// These are read by others.
	about  atomic.Pointer[about]
	shown  operation.Counters
	rounds atomic.Uint64 // odd while the connection waits for input
	writes atomic.Uint64 // odd while replies are being written
	// unfinished numbers the command or transaction that has arrived in part. 0: none.
	unfinished atomic.Uint64
	large      atomic.Bool // the buffers are larger than for an idle connection
	awoken     atomic.Bool // sweep ended a read, to shrink the buffers
	// strangerSince is since when the connection has no user, in nanoseconds since 1970. 0: it has one,
	// or needs none.
	strangerSince atomic.Int64

	// These belong to sweep.
	seen           activity
	seenAt         time.Time
	seenUnfinished uint64
	unfinishedAt   time.Time
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	now := time.Now()
	c := &conn{server: s, net: nc, id: id, created: now, seenAt: now}
	c.about.Store(&about{})
	c.openSession()
	return c
}

// serve reads what has arrived, runs every command in it, and writes all the replies, until the client or
// the server ends it.
func (c *conn) serve() {
	defer c.close()
	defer func() {
		if c.server.options.Panics.Caught("resp: connection", recover()) {
			c.server.guard.Count(guard.Panic, c.net.RemoteAddr().String())
		}
	}()
	for !c.closing {
		if !c.round() {
			return
		}
	}
	c.flush()
	c.linger()
}

// round reads once, runs the commands and writes the replies. It returns false if the connection
// has failed.
func (c *conn) round() bool {
	c.makeRoom()
	if c.closing {
		return true
	}
	n, err := c.read()
	c.end += n
	c.run()
	c.publish()
	if !c.flush() || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.closing = c.closing || err != nil
	return true
}

// run carries out every command that has arrived.
func (c *conn) run() {
	c.began = time.Now()
	for !c.closing && c.end-c.start >= max(c.need, 1) {
		args, size, need, err := c.parser().next(c.in[c.start:c.end], c.args[:0])
		c.args, c.need = args, need
		if err != nil {
			if errors.Is(err, errTLS) {
				c.server.guard.Count(guard.TLS, c.net.RemoteAddr().String())
			}
			c.fail("ERR " + err.Error())
			c.closing = true
			break
		}
		if size == 0 {
			break
		}
		line := c.in[c.start] != '*'
		c.start += size
		if line && c.isHTTP(args) {
			c.server.guard.Count(guard.HTTP, c.net.RemoteAddr().String())
			c.closing = true
			break
		}
		if len(args) > 0 {
			c.execute()
		}
		c.flushLong()
	}
	c.settle()
	c.server.decisions.Observe(&c.decided, c.began)
}

// flushLong writes the replies if they are long.
func (c *conn) flushLong() {
	if len(c.out.buf) >= flushAt {
		c.settle()
		c.server.decisions.Observe(&c.decided, c.began)
		c.closing = !c.flush() || c.closing
		c.began = time.Now() // the time of a slow reader is not that of its next decisions
	}
}

// flush writes the replies, and gives back the memory of long replies. It returns false if the
// client no longer reads.
func (c *conn) flush() bool {
	sent := true
	switch {
	case len(c.out.buf) == 0:
	case !c.holdReplies(cap(c.out.buf)):
		c.server.guard.Count(guard.Memory, c.net.RemoteAddr().String())
		sent = false
	default:
		sent = c.send() == nil
	}
	c.loud = 0
	c.dropReplies()
	return sent
}

// dropReplies drops the replies after loud, and gives back the memory of long replies.
func (c *conn) dropReplies() {
	c.out.buf = c.out.buf[:c.loud]
	if cap(c.out.buf) > usualOutput {
		c.out.buf = bytes.Clone(c.out.buf)
	}
	c.holdReplies(0)
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
	// after the guard has counted the connection out, so the client may come back at once
	defer func() { _ = c.net.Close() }()
	c.hold(0)
	c.holdReplies(0)
	c.holdQueue(0)
	c.forgetTransaction()
	c.in = nil
	c.publish()
	c.server.forget(c)
}

// parser returns the parser of the next command: a connection without a user has short commands.
func (c *conn) parser() *parser {
	if c.session != nil && c.user == nil {
		return &c.server.logins
	}
	return &c.server.parser
}

// publish shows the counts of the connection to Stats. Only the connection writes there.
func (c *conn) publish() { c.shown.Set(&c.counts) }

// drainBegins returns the time during a shutdown, and zero before: a look at the clock is dear.
func (c *conn) drainBegins() (now time.Time) {
	if c.server.closingSince.Load() != nil {
		now = time.Now()
	}
	return now
}

// drainLater puts off the end of reading by the time since begin, or if that is zero, since the shutdown began.
func (c *conn) drainLater(begin time.Time) {
	since := c.server.closingSince.Load()
	if since == nil {
		return
	}
	if begin.IsZero() {
		begin = *since
	}
	c.waited += time.Since(begin)
	c.server.mu.Lock() // drain has set its own deadline
	defer c.server.mu.Unlock()
	_ = c.net.SetReadDeadline(since.Add(drainTime + c.waited))
}

// makeRoom makes room for more input. The buffer begins small. It grows to the usual size when a read fills it, and
// further only for a command that is longer, as that arrives; after such a command it goes back.
func (c *conn) makeRoom() {
	left := c.end - c.start
	switch size := len(c.in); {
	case size == 0:
		c.resize(leastInput)
	case left == size:
		c.resize(2 * size)
	case c.end == size && size < usualInput:
		c.resize(usualInput)
	case size > usualInput && max(left, c.need) < usualInput:
		c.resize(usualInput)
	default:
		c.shift(c.in)
	}
}

func (c *conn) resize(size int) {
	if !c.hold(size) {
		c.fail("ERR too many long commands are arriving at once, try again")
		c.closing = true
		return
	}
	c.shift(make([]byte, size))
	c.unpin()
	c.large.Store(true)
}

// shift moves the input that is left to the start of a buffer, which may be the one that it is in.
func (c *conn) shift(to []byte) {
	c.end = copy(to, c.in[c.start:c.end])
	c.start, c.in = 0, to
}

// unpin drops the arguments of the last command, which would keep their buffer alive.
func (c *conn) unpin() {
	c.scratch = nil
	clear(c.args[:cap(c.args)])
	c.args = c.args[:0]
}

// hold accounts for a buffer of this size in place of the one there is. It returns false if there may not be one.
func (c *conn) hold(size int) bool {
	return c.account(beyond(size, usualInput) - beyond(len(c.in), usualInput))
}

// holdReplies accounts for replies of this size, in place of those before. It returns false if there may not be so many:
// clients that do not read would otherwise make the server hold as much as they ask for.
func (c *conn) holdReplies(size int) bool {
	now := beyond(size, usualOutput)
	if !c.account(now - c.held) {
		return false
	}
	c.held = now
	return true
}

// addressShare is the part of MaxBuffered for the clients of one address.
const addressShare = 4

// account adds to the bytes held for all clients, and for the client's address.
// It returns false, and adds nothing, if either would be too much.
func (c *conn) account(more int64) bool {
	if more == 0 {
		return true
	}
	s := c.server
	if more < 0 {
		s.freed.Add(-more)
	}
	if !c.source.Hold(more, s.options.MaxBuffered/addressShare) {
		return false
	}
	if s.buffered.Add(more) > s.options.MaxBuffered && more > 0 {
		s.buffered.Add(-more)
		c.source.Hold(-more, 0)
		return false
	}
	return true
}

func beyond(size, usual int) int64 { return int64(max(0, size-usual)) }

// read waits for input. While nothing comes, sweep may wake it, and the connection gives its
// buffers back.
func (c *conn) read() (n int, err error) {
	if id := c.unfinishedID(); c.unfinished.Load() != id {
		c.unfinished.Store(id)
	}
	c.rounds.Add(1)
	defer c.rounds.Add(1)
	for {
		n, err = c.net.Read(c.in[c.end:])
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.awoken.Swap(false) {
			return n, err
		}
		c.shrink()
	}
}
