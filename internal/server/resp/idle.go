package resp

import (
	"errors"
	"os"
	"time"
)

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
		return uint64(c.counts.Commands + 1)
	}
	return 0
}

// shrink gives back the buffers of an idle connection, and resets the deadline of its read.
func (c *conn) shrink() {
	if c.start == c.end {
		c.resize(idleInput)
		c.args, c.out.buf, c.calls, c.batch, c.text = nil, nil, nil, batch{}, nil
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
