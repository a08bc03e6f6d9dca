package resp

import (
	"errors"
	"os"
	"time"
)

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

const (
	// collectSize is how many bytes of long buffers are freed before the memory for them is
	// returned to the operating system, and collectTime how often that happens at most.
	collectSize = 32 << 20
	collectTime = time.Minute
)

// collect returns the memory of freed long buffers. A quiet server would otherwise keep the memory
// for minutes, because its allocations start no collection.
func (s *Server) collect(now time.Time) {
	s.mu.Lock()
	due := s.freed.Load() >= collectSize && now.Sub(s.collected) >= collectTime
	if due {
		s.freed.Store(0)
		s.collected = now
	}
	s.mu.Unlock()
	if due {
		s.freeMemory()
	}
}

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

// unfinishedID returns the number of a transaction with memory beyond the usual, or the number of a
// command that has arrived in part, or 0. Input byte by byte does not change the number.
func (c *conn) unfinishedID() uint64 {
	const transaction = 1 << 63
	switch {
	case c.pending.open && cap(c.pending.queue) > usualInput:
		return transaction | uint64(c.pending.began+1)
	case c.end > c.start:
		return uint64(c.counts.Requests + 1)
	}
	return 0
}

// shrink gives back the buffers of an idle connection, and resets the deadline of its read.
func (c *conn) shrink() {
	if c.start == c.end {
		c.resize(idleInput)
		c.args, c.out.buf, c.queue, c.requests, c.decisions, c.limit = nil, nil, nil, nil, nil, nil
		c.large.Store(false)
	}
	c.server.mu.Lock() // drain sets a deadline of its own
	defer c.server.mu.Unlock()
	var deadline time.Time
	if since := c.server.closingSince.Load(); since != nil {
		deadline = since.Add(drainTime + c.waited)
	}
	_ = c.net.SetReadDeadline(deadline)
}
