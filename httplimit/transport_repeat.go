package httplimit

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// mayRepeat reports whether a request with this answer may be sent again. Who is denied by 429 was not served; of 503 nobody knows.
func mayRepeat(r *http.Request, status int, retry bool) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return retry && idempotent(r)
	}
	return false
}

func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header.Get("Idempotency-Key") != ""
}

// repeat returns the request with a body that has not been read.
func repeat(r *http.Request) (*http.Request, error) {
	next := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return next, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	next.Body = body
	return next, nil
}

// drain reads what is left of a short body, so that its connection can be used again, and closes it.
func drain(body io.ReadCloser) {
	const most = 64 << 10
	_, _ = io.CopyN(io.Discard, body, most)
	_ = body.Close()
}

// closeBody closes the body of a request that is not sent.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// backOff is how long to wait before a request is sent again that was denied by a server that does not say when: a second, twice as long each time, and up to half of that less by chance.
func backOff(attempt int) time.Duration {
	longest := time.Second << min(attempt, 12)
	return longest/2 + rand.N(longest/2+1) //nolint:gosec // nothing is secret about it
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
