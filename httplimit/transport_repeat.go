package httplimit

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirlimit/weir/internal/panics"
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

// How much of the body of a denial is kept while its request waits to be sent again, and how long it may take to come.
const (
	mostOfDenial = 64 << 10
	denialCame   = 250 * time.Millisecond
)

// settle ends the connection's part in an answer that is short and there, so that it can be used again: the answer is kept in memory. Of one that is longer, or not there
// soon, the connection is closed, and who reads the body to its end finds that it is cut off.
func settle(answer *http.Response) *http.Response {
	source, read := answer.Body, make(chan kept, 1)
	go func() {
		var body kept
		body.err = panics.Catch(func() (err error) {
			body.text, err = io.ReadAll(io.LimitReader(source, mostOfDenial+1))
			return err
		})
		if len(body.text) > mostOfDenial {
			body = kept{body.text[:mostOfDenial], io.ErrUnexpectedEOF}
		}
		read <- body
	}()
	timer := time.NewTimer(denialCame)
	defer timer.Stop()
	body := kept{nil, io.ErrUnexpectedEOF}
	select {
	case body = <-read:
		panics.Raise(body.err)
	case <-timer.C:
	}
	_ = source.Close() // which ends the reading
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body.text), &ending{body.err}))
	return answer
}

// kept is what was read of a body, and what ended that.
type kept struct {
	text []byte
	err  error
}

// An ending is a Reader of nothing, and of an error if there is one.
type ending struct{ err error }

// Read implements io.Reader.
func (e *ending) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return 0, io.EOF
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
