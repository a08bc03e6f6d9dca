package resp

import (
	"errors"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// failWith replies with what a client may know of an error: all of it if the request makes no sense, nothing
// if the server is at fault. That goes to the log.
func (c *conn) failWith(err error) {
	if errors.Is(err, policy.ErrForbidden) {
		c.fail(noKey)
		return
	}
	c.fail("ERR " + c.failure(err))
}

// failure returns what a client is told of an error.
func (c *conn) failure(err error) string {
	var limit *weir.LimitError
	var request *policy.RequestError
	switch {
	case errors.As(err, &request):
		return strings.TrimPrefix(request.Error(), "weir: ")
	case errors.Is(err, policy.ErrToken), errors.Is(err, policy.ErrSettled):
		return strings.TrimPrefix(err.Error(), "weir: ")
	case errors.Is(err, policy.ErrForbidden):
		return noKey
	case errors.As(err, &limit):
		return strings.TrimPrefix(limit.Error(), "weir: ")
	case errors.Is(err, weir.ErrTime):
		return "AT is out of range; accepted: a time in the years 1866 to 2074"
	case errors.Is(err, store.ErrUnnamed):
		return strings.TrimPrefix(nameMissing, "ERR ")
	case errors.Is(err, weir.ErrClientTime):
		return "AT is refused: the store of this server decides by its own clock"
	}
	c.counts.Undecided++
	c.server.logFailure(err, "no decision could be made")
	if errors.Is(err, store.ErrOverloaded) {
		return store.ErrOverloaded.Error() + ", try again; " + store.ErrNothingDone.Error()
	}
	return "no decision could be made, try again"
}

// logFailure logs at most once a second: when a store is gone, every request fails. An open circuit is logged when it opens.
func (s *Server) logFailure(err error, message string) {
	if store.IsCircuitOpen(err) {
		return
	}
	now, last := time.Now().Unix(), s.failedAt.Load()
	if now != last && s.failedAt.CompareAndSwap(last, now) {
		s.options.Logger.Error("resp: "+message, "error", store.WithoutKeys(err))
	}
}
