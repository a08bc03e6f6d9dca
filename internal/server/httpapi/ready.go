package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirlimit/weir/store"
)

// readyTimeout bounds how long /readyz waits for the store.
const readyTimeout = 2 * time.Second

// readiness shares a check of the store among the requests that come during it: nobody needs a right
// for /readyz, so many requests must not become many requests to the engine.
type readiness struct {
	mu      sync.Mutex
	current *readyCheck // nil: none is under way
}

type readyCheck struct {
	done chan struct{}
	err  error // after done is closed
}

// checkReady returns the result of Options.Ready, which it calls unless a call is under way.
func (s *Server) checkReady(ctx context.Context) error {
	r := &s.readiness
	r.mu.Lock()
	c := r.current
	if c != nil {
		r.mu.Unlock()
		select {
		case <-c.done:
			return c.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c = &readyCheck{done: make(chan struct{}), err: context.Canceled} // if Ready panics
	r.current = c
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.current = nil
		r.mu.Unlock()
		close(c.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout) // others wait for it too
	defer cancel()
	c.err = s.opts.Ready(ctx)
	return c.err
}

// ready answers whether decisions can be made. Only an operator gets the reason and the warnings.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) *Problem {
	if err := s.checkReady(r.Context()); err != nil {
		if s.failures.PassWithin(time.Now(), time.Second) {
			s.opts.Log.Error("not ready", "error", store.WithoutKeys(err))
		}
		return &Problem{Status: http.StatusServiceUnavailable, Detail: strings.Join(s.degraded("the store can't be reached"), "; ")}
	}
	body := []byte("ok\n")
	for _, warning := range s.degraded() {
		body = append(body, "warning: "+warning+"\n"...)
	}
	return static("text/plain; charset=utf-8", body)(w, r)
}

// degraded returns the reasons and the warnings of the status for an operator, and otherwise only
// that there are reasons.
func (s *Server) degraded(reasons ...string) []string {
	switch {
	case s.opts.Admin:
		return append(reasons, s.opts.Status().warnings()...)
	case len(reasons) > 0:
		return []string{"not ready"}
	}
	return nil
}
