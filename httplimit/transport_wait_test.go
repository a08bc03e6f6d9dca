package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

// A body counts how often it is closed.
type body struct {
	io.Reader
	closed *int
}

func (b body) Close() error { *b.closed++; return nil }

// post sends a body that can't be had again, with a deadline if that is not 0.
func post(c *http.Client, deadline time.Duration) (closed int, err error) {
	ctx := context.Background()
	if deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, body{strings.NewReader("sent"), &closed})
	_, err = c.Transport.RoundTrip(r)
	return closed, err
}

// newPace returns a limiter on the bubble's time.
func newPace(t *testing.T, limit string) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(limit), weir.WithName("pace"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// paced runs a test as bubble does, with a limiter.
func paced(t *testing.T, limit string, opts httplimit.TransportOptions, test func(*testing.T, *fakeServer, *http.Client, *weir.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{start: time.Now()}
		opts.Limiter, opts.Base = newPace(t, limit), server
		transport, err := httplimit.NewTransport(opts)
		if err != nil {
			t.Fatal(err)
		}
		test(t, server, &http.Client{Transport: transport}, opts.Limiter)
	})
}

// Pitfall W1: at 1/s, of requests at 0.9 s and 1.0 s the second waits 0.9 s.
func TestW1TransportSpacing(t *testing.T) {
	for _, limit := range []string{"min-interval 1/1s", "gcra 1/1s", "leaky-queue 1/1s queue=5"} {
		paced(t, limit, httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, _ *weir.Limiter) {
			time.Sleep(900 * time.Millisecond)
			send(t, c, endpoint)
			time.Sleep(100 * time.Millisecond)
			send(t, c, endpoint)
			within(t, limit+": the first", s.came[0], 900*time.Millisecond, 900*time.Millisecond)
			within(t, limit+": the second", s.came[1], 1900*time.Millisecond, 1900*time.Millisecond)
		})
	}
}

// Pitfall W2: a wait of 5 s, of the limiter or for the server, with a deadline of 1 s returns at once. Nothing is charged or sent, and the body is closed.
func TestW2TransportHopelessDeadline(t *testing.T) {
	paced(t, "1/5s", httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, pace *weir.Limiter) {
		send(t, c, endpoint)
		hopeless(t, s, c)
		d, err := pace.Peek(context.Background(), "https://api.example:443")
		if err != nil || d.ResetAfter != 5*time.Second {
			t.Errorf("%+v, %v: something was charged", d, err)
		}
		time.Sleep(5 * time.Second)
		send(t, c, endpoint)
		within(t, "the next", s.came[1], 5*time.Second, 5*time.Second)
	})
	for _, answer := range []func() *http.Response{fixed(429, "Retry-After", "5"), fixed(200, "RateLimit", `"a";r=0;t=5`)} {
		paced(t, "100/1s", httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, pace *weir.Limiter) {
			s.answer = replies(answer)
			send(t, c, endpoint)
			hopeless(t, s, c)
			if d, err := pace.Peek(context.Background(), "https://api.example:443"); err != nil || d.Remaining != 99 {
				t.Errorf("%+v, %v: something was charged", d, err)
			}
		})
	}
}

func hopeless(t *testing.T, s *fakeServer, c *http.Client) {
	t.Helper()
	start := time.Now()
	closed, err := post(c, time.Second)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of a deadline", err)
	}
	if took := time.Since(start); took != 0 {
		t.Errorf("it took %v", took)
	}
	if len(s.came) != 1 || closed != 1 {
		t.Errorf("%d requests were sent, want the 1 before; the body was closed %d times", len(s.came), closed)
	}
}

// Pitfall W3: a limit that is raised while requests wait lets them go sooner, in the order in which they came.
func TestW3TransportRaise(t *testing.T) {
	paced(t, "1/1h", httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, pace *weir.Limiter) {
		var mu sync.Mutex
		var order []string
		s.answer = func(r *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, r.URL.Path)
			return told(200)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { send(t, c, fmt.Sprintf("http://api.example/%d", i)) })
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if err := pace.SetLimit(weir.MustParseLimit("1/1s")); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		within(t, "the last", s.came[3], time.Minute, time.Minute+3*time.Second)
		if got := strings.Join(order, ""); got != "/0/1/2/3" {
			t.Errorf("order %s", got)
		}
	})
}

// What the server says while a request waits for the limiter stands for it too, and what it had taken is given back.
func TestTransportLooksAgainAfterTheLimiter(t *testing.T) {
	paced(t, "min-interval 1/10s", httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, _ *weir.Limiter) {
		s.answer = replies(func() *http.Response { time.Sleep(5 * time.Second); return told(429, "Retry-After", "8") }, fixed(200))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { send(t, c, endpoint) })
			synctest.Wait()
		}
		all.Wait()
		within(t, "the second", s.came[1], 13*time.Second, 13800*time.Millisecond)
		within(t, "the third", s.came[2]-s.came[1], 10*time.Second, 10*time.Second)
	})
}

// What costs more than the capacity never passes: it is not sent.
func TestTransportCost(t *testing.T) {
	cost := func(r *http.Request) int64 { return max(0, r.ContentLength) }
	paced(t, "10/10s", httplimit.TransportOptions{Cost: cost}, func(t *testing.T, s *fakeServer, c *http.Client, _ *weir.Limiter) {
		for _, text := range []string{"six...", "", "five.", "more than ten"} {
			answer, err := c.Post(endpoint, "text/plain", strings.NewReader(text))
			var capacity *weir.CapacityError
			if (err != nil) != (len(text) > 10) || err != nil && !errors.As(err, &capacity) {
				t.Errorf("%q: %v, %v", text, answer, err)
			}
		}
		if len(s.came) != 3 || s.came[2] != time.Second {
			t.Errorf("came at %v", s.came)
		}
	})
}

// A server can't make a client wait for a year.
func TestTransportMaxWait(t *testing.T) {
	for _, fields := range [][]string{{"Retry-After", "61"}, {"Retry-After", "99999999999999999999"}, {"RateLimit", `"a";r=0;t=999999999999`}} {
		bubble(t, httplimit.TransportOptions{Retries: 3}, replies(fixed(429, fields...)), func(t *testing.T, s *fakeServer, c *http.Client) {
			if answer := send(t, c, endpoint); answer.StatusCode != http.StatusTooManyRequests {
				t.Errorf("status %d", answer.StatusCode)
			}
			closed, err := post(c, 0)
			var wait *httplimit.WaitError
			if !errors.As(err, &wait) || wait.Wait < time.Minute || wait.Most != time.Minute || wait.Deadline || errors.Is(err, context.DeadlineExceeded) || closed != 1 {
				t.Errorf("error %#v; the body was closed %d times", err, closed)
			}
			if len(s.came) != 1 || time.Since(s.start) > 0 {
				t.Errorf("came at %v", s.came)
			}
		})
	}
	// Nor by not answering those who are before.
	answer := replies(fixed(200, "RateLimit", `"a";r=1;t=3600`), func() *http.Response { time.Sleep(time.Hour); return told(200) })
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, _ *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		var all sync.WaitGroup
		all.Go(func() { send(t, c, endpoint) })
		time.Sleep(2 * time.Second)
		_, err := post(c, 0)
		var wait *httplimit.WaitError
		if !errors.As(err, &wait) || wait.Wait != 0 || !strings.Contains(err.Error(), "1m0s") {
			t.Errorf("error %v", err)
		}
		all.Wait()
	})
}

// Those who wait are told at once when a new answer makes their wait hopeless, and those who can wait do.
func TestTransportTellsThoseWhoWait(t *testing.T) {
	answer := func(r *http.Request) *http.Response {
		if r.URL.Path == "/late" {
			time.Sleep(2 * time.Second)
			return told(429, "Retry-After", "50")
		}
		return told(200, "RateLimit", `"a";r=0;t=10`)
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		var all sync.WaitGroup
		all.Go(func() { send(t, c, "https://api.example/late") })
		synctest.Wait()
		send(t, c, endpoint)
		all.Go(func() { send(t, c, endpoint) })
		synctest.Wait()
		_, err := post(c, 20*time.Second)
		if took := time.Since(s.start); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		all.Wait()
		within(t, "who can wait", s.came[2], 52*time.Second, 57*time.Second)
	})
}

// Who gives up while it waits takes nothing, and does not hold up the next.
func TestTransportCancelled(t *testing.T) {
	answer := replies(fixed(429, "Retry-After", "10"), fixed(200))
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		closed := 0
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPut, endpoint, body{strings.NewReader("x"), &closed})
			if _, err := c.Transport.RoundTrip(r); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() { send(t, c, endpoint) })
		synctest.Wait()
		cancel()
		all.Wait()
		within(t, "the next", s.came[1], 10*time.Second, 11*time.Second)
		if len(s.came) != 2 || closed != 1 {
			t.Errorf("came at %v; the body was closed %d times", s.came, closed)
		}
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
		if _, err := c.Transport.RoundTrip(r); !errors.Is(err, context.Canceled) || len(s.came) != 2 {
			t.Errorf("error %v of what was cancelled before", err)
		}
	})
}

// A connection that fails is the caller's to know of; the next in line goes.
func TestTransportConnectionFails(t *testing.T) {
	answer := replies(fixed(429, "Retry-After", "10"), func() *http.Response { return nil }, fixed(200))
	bubble(t, httplimit.TransportOptions{Retries: 5}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		if _, err := c.Get(endpoint); err == nil || !strings.Contains(err.Error(), "no connection") {
			t.Errorf("error %v", err)
		}
		send(t, c, endpoint)
		if len(s.came) != 3 {
			t.Errorf("came at %v", s.came)
		}
	})
}
