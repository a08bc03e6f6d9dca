package resp

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/policy"
)

// A watcher allows all requests, and records the most bytes in the account meanwhile.
type watcher struct {
	checks.Policies

	server *Server
	most   atomic.Int64
}

func (*watcher) Keys(*policy.Request) []string { return nil }

func (w *watcher) Check(context.Context, *policy.Request) (policy.Decision, error) {
	for held, most := w.server.buffered.Load(), w.most.Load(); held > most && !w.most.CompareAndSwap(most, held); {
		most = w.most.Load()
	}
	return policy.Decision{Decision: weir.Decision{Allowed: true}}, nil
}

// The calls that a connection puts off while an engine decides are in the account of long buffers. If
// the account is full, fewer calls are put off, and each is still answered.
func TestCallsPutOffAreInTheAccount(t *testing.T) {
	var headers strings.Builder
	for i := range 40 {
		headers.WriteString("|HEADER|h" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "|v")
	}
	for _, budget := range []int64{64 << 20, 400_000, 0} {
		s := newTestServer()
		w := &watcher{server: s}
		s.options.Policies, s.options.Waits, s.options.MaxBuffered = w, true, budget
		c := newConn(s, nil, 1)
		c.receive(pipeline(128, "WEIR.CHECK|PATH|/#"+headers.String()))
		c.settle()
		if n := strings.Count(string(c.out.buf), "*9\r\n:1\r\n"); n != 128 || strings.Contains(string(c.out.buf), "-ERR") {
			t.Errorf("budget %d: %d checks are allowed, want 128: %.200q", budget, n, c.out.buf)
		}
		if most := w.most.Load(); most > budget || budget > 1<<20 && most < 20_000 {
			t.Errorf("budget %d: up to %d bytes are in the account", budget, most)
		}
		c.out.buf = nil
		c.net = &script{}
		c.close()
		if held := s.buffered.Load(); held != 0 {
			t.Errorf("budget %d: %d bytes are left in the account", budget, held)
		}
	}
}

// A single call that is larger than the account has room for fails.
func TestCallBeyondTheAccountFails(t *testing.T) {
	s := newTestServer()
	s.options.Policies, s.options.Waits, s.options.MaxBuffered = &watcher{server: s}, true, 1000
	c := newConn(s, nil, 1)
	k := c.newCall(operation.ByCommand("weir.check.release"))
	k.Token = strings.Repeat("x", usualQueue)
	c.do(k)
	if got := string(c.out.buf); !strings.HasPrefix(got, "-ERR too many calls wait for the engine at once") || len(c.queue) > 0 {
		t.Errorf("%d calls are queued; reply %.100q", len(c.queue), got)
	}
}

// A connection keeps no request of a check that is over.
func TestCallsKeepNoRequests(t *testing.T) {
	for _, waits := range []bool{false, true} {
		s := newTestServer()
		s.options.Policies, s.options.Waits = &watcher{server: s}, waits
		c := newConn(s, nil, 1)
		c.receive(pipeline(3, "WEIR.CHECK|PATH|/#|HEADER|a|b"))
		if n := strings.Count(string(c.out.buf), "*9\r\n:1\r\n"); n != 3 {
			t.Errorf("waits %v: %d checks are allowed", waits, n)
		}
		if c.scratch != nil && c.scratch.Request != nil {
			t.Errorf("waits %v: the connection has the request of the last check", waits)
		}
		for _, p := range c.queue[:cap(c.queue)] {
			if p.call != nil {
				t.Errorf("waits %v: the queue has a call that is over", waits)
			}
		}
	}
}
