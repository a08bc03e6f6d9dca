package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store"
)

// withPolicies is a route that asks policies.
func (s *Server) withPolicies(serve func(http.ResponseWriter, *http.Request) *Problem) route {
	return route{http.MethodPost, func(w http.ResponseWriter, r *http.Request) *Problem {
		if s.opts.Policies == nil {
			return &Problem{Status: http.StatusNotFound, Detail: "this server has no policies; weir serve --config weir.yaml has those of the file"}
		}
		return serve(w, r)
	}}
}

// within bounds how long an operation may wait for the store.
func (s *Server) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opts.Timeout > 0 {
		return context.WithTimeout(ctx, s.opts.Timeout)
	}
	return ctx, func() {}
}

// undecided tells the log of a failure, and the client that there was one.
func (s *Server) undecided(err error) *Problem {
	s.counts.undecided.Add(1)
	s.logFailure(err, "no decision")
	if errors.Is(err, store.ErrOverloaded) {
		return &Problem{Status: http.StatusServiceUnavailable, Detail: store.ErrOverloaded.Error() + "; try again"}
	}
	return &Problem{Status: http.StatusServiceUnavailable, Detail: "no decision could be made; try again"}
}

// without counts and logs a decision that was made after the store failed.
func (s *Server) without(failure error, d weir.Decision) {
	s.counts.undecided.Add(1)
	switch {
	case d.Local:
		s.counts.local.Add(1)
	case d.Allowed:
		s.counts.failedOpen.Add(1)
	}
	s.logFailure(failure, "the store failed, and requests are decided without it")
}

// logFailure logs at most once a second, as failures allows. An open circuit is logged when it opens.
func (s *Server) logFailure(err error, message string) {
	if !store.IsCircuitOpen(err) && s.failures.open(time.Now()) {
		s.opts.Log.Error(message, "error", store.WithoutKeys(err))
	}
}
