package guard

import (
	"errors"
	"net"
	"time"
)

const (
	// refusalTime is how long a refused connection may take to end.
	refusalTime = 200 * time.Millisecond
	// maxRefusals is how many refused connections may be open at once, and leastRefusals how many
	// where Options.Max is small. One more is closed without a reply.
	maxRefusals, leastRefusals = 64, 4
	// refusalShare is the part of Options.Max for refused connections: their files are reserved.
	refusalShare = 8
)

// Refuse counts a refused connection, sends the result of reply, and closes the connection. reply
// may read from the connection for a moment. Refuse does not wait: done is called when the connection
// is closed, in any case.
func (g *Guard) Refuse(c net.Conn, why Reason, reply func(net.Conn) []byte, done func()) {
	g.Count(why, c.RemoteAddr().String())
	select {
	case g.refusal <- struct{}{}:
	default:
		_ = c.Close()
		done()
		return
	}
	go g.options.Panics.Safe("refuse a connection", func() {
		defer done()
		defer func() { <-g.refusal }()
		_ = c.SetDeadline(time.Now().Add(refusalTime))
		text := reply(c)
		_ = c.SetDeadline(time.Now().Add(refusalTime))
		_, _ = c.Write(text)
		Linger(c, refusalTime, refusalTime, refusalTime)
	})()
}

// Linger ends a connection whose client may still be sending. To close it at once would make the
// operating system drop the last replies, if there is unread input. It waits for the client to send
// or to end for the time of first, after that each time for that of next, and most in all.
func Linger(c net.Conn, first, next, most time.Duration) {
	defer func() { _ = c.Close() }()
	if CloseWrite(c) != nil {
		return
	}
	end := time.Now().Add(most)
	deadline, scrap := time.Now().Add(first), make([]byte, 4<<10)
	for {
		_ = c.SetReadDeadline(deadline)
		if _, err := c.Read(scrap); err != nil {
			return
		}
		if deadline = time.Now().Add(next); deadline.After(end) {
			deadline = end
		}
	}
}

// CloseWrite ends the output of a connection, and goes on receiving.
func CloseWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// IsTLS reports whether the first bytes of a connection are the beginning of a TLS handshake.
func IsTLS(first []byte) bool {
	const handshake, major = 0x16, 3 // the type of a record, and its version
	return len(first) >= 2 && first[0] == handshake && first[1] == major
}
