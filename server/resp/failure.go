package resp

import (
	"errors"
	"strings"
	"time"

	"github.com/weirlimit/weir"
)

// failWith replies with what a client may know of an error: all of it if the request makes no sense, nothing
// if the server is at fault. That goes to the log.
func (c *conn) failWith(err error) {
	var limit *weir.LimitError
	switch {
	case errors.As(err, &limit):
		c.fail("ERR " + strings.TrimPrefix(limit.Error(), "weir: "))
	case errors.Is(err, weir.ErrTime):
		c.fail("ERR AT is out of range; accepted: a time in the years 1866 to 2074")
	default:
		c.server.logFailure(err)
		c.fail("ERR no decision could be made, try again")
	}
}

// logFailure logs at most once a second: when a store is gone, every request fails.
func (s *Server) logFailure(err error) {
	now, last := time.Now().Unix(), s.failedAt.Load()
	if now != last && s.failedAt.CompareAndSwap(last, now) {
		s.options.Logger.Error("resp: no decision could be made", "error", err)
	}
}
