package grpclimit

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir/httplimit/header"
)

// Bounds on what is kept of what servers say. What is forgotten costs a call that is refused.
const (
	mostWords   = 4096
	longestWord = time.Hour // after which a server is asked again, however long it wanted to be left alone
)

// A scope is the calls that a server's word is for.
type scope struct{ key, method string }

// words are what servers have said: until when they take no calls.
type words struct {
	mu    sync.Mutex
	until map[scope]time.Time
}

// wait returns how long calls have to wait, from now on.
func (w *words) wait(s scope) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.until[s]
	if !ok {
		return 0
	}
	wait := time.Until(until)
	if wait <= 0 {
		delete(w.until, s)
	}
	return wait
}

// keep keeps a server's word, unless it has given one for longer.
func (w *words) keep(s scope, wait time.Duration) {
	now := time.Now()
	until := now.Add(min(wait, longestWord))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until == nil {
		w.until = map[scope]time.Time{}
	}
	former, known := w.until[s]
	if !known && len(w.until) >= mostWords {
		w.forget(now)
	}
	if until.After(former) {
		w.until[s] = until
	}
}

// forget makes room: for what is over, or else for any one.
func (w *words) forget(now time.Time) {
	var one scope
	for s, until := range w.until {
		if one = s; !until.After(now) {
			delete(w.until, s)
		}
	}
	if len(w.until) >= mostWords {
		delete(w.until, one)
	}
}

// learn keeps what the answer to a call says of when others may come. If that is a refusal that says when this call can pass, it returns that.
func (c *Client) learn(key, method string, err error, head, trailer metadata.MD) (wait time.Duration, told bool) {
	var left time.Duration
	if wait, told = refusedFor(err); !told {
		r := read(head, trailer)
		if told = r.Retry && isRefusal(err); told {
			wait = r.RetryAfter
		} else {
			left = nothingLeft(r)
		}
	}
	if longest := max(wait, left); longest > 0 {
		c.words.keep(scope{key, method}, longest)
	}
	return wait, told
}

func isRefusal(err error) bool {
	code := status.Code(err)
	return code == codes.ResourceExhausted || code == codes.Unavailable
}

// refusedFor returns the retry_delay of a refusal.
func refusedFor(err error) (time.Duration, bool) {
	if err == nil || !isRefusal(err) {
		return 0, false
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().IsValid() {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// read reads the fields of HTTP that an answer's metadata has. Of an answer without messages, gRPC gives its header as its trailer.
func read(mds ...metadata.MD) header.Report {
	var h http.Header
	for _, md := range mds {
		for _, name := range [...]string{"ratelimit", "ratelimit-policy", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} {
			if values := md[name]; len(values) > 0 {
				if h == nil {
					h = http.Header{}
				}
				h[http.CanonicalHeaderKey(name)] = values
			}
		}
	}
	if h == nil {
		return header.Report{}
	}
	return header.Read(h, time.Now())
}

// nothingLeft returns for how long an answer says that no more calls pass.
func nothingLeft(r header.Report) (longest time.Duration) {
	for _, s := range r.Limits {
		if s.Remaining == 0 && s.Unit != "concurrent-requests" {
			longest = max(longest, s.Within)
		}
	}
	return longest
}

// jittered is a wait, a bit longer: up to a tenth, up to a second, and not beyond the deadline of ctx.
func jittered(ctx context.Context, wait time.Duration) time.Duration {
	longer := wait + rand.N(1+min(wait/10, time.Second)) //nolint:gosec // nobody is to be kept from guessing it
	if deadline, ok := ctx.Deadline(); ok {
		longer = max(wait, min(longer, time.Until(deadline)-time.Millisecond))
	}
	return longer
}
