package httplimit_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

// However often a request is sent again, servers make it wait for no more than MaxWait, all waits together.
func TestTransportMaxWaitIsForAllRetries(t *testing.T) {
	opts := httplimit.TransportOptions{Retries: 8, MaxWait: 10 * time.Second}
	for _, c := range []struct {
		fields      []string
		first, last time.Duration
		came        int
	}{
		{[]string{"Retry-After", "6"}, 6 * time.Second, 6600 * time.Millisecond, 2},
		{[]string{"Retry-After", "10"}, 10 * time.Second, 10 * time.Second, 2},
		{nil, 3500 * time.Millisecond, 10 * time.Second, 4}, // it backs off: for up to 1, 2, 4, and maybe no 8 seconds
	} {
		bubble(t, opts, replies(fixed(429, c.fields...)), func(t *testing.T, s *fakeServer, cl *http.Client) {
			if answer := send(t, cl, endpoint); answer.StatusCode != http.StatusTooManyRequests {
				t.Errorf("status %d", answer.StatusCode)
			}
			within(t, "the denial", time.Since(s.start), c.first, c.last)
			if n := len(s.came); n < c.came || n > c.came && (c.fields != nil || n > c.came+1) {
				t.Errorf("%v: came at %v, want %d", c.fields, s.came, c.came)
			}
		})
	}
}

// What a server says while a request waits for the limiter is counted with what it has waited for the server before.
func TestTransportMaxWaitIsForAllLooks(t *testing.T) {
	cost := func(r *http.Request) int64 {
		if r.URL.Path == "/late" {
			return 0
		}
		return 1
	}
	paced(t, "min-interval 1/8s", httplimit.TransportOptions{MaxWait: 10 * time.Second, Cost: cost}, func(t *testing.T, s *fakeServer, c *http.Client, _ *weir.Limiter) {
		s.answer = func(r *http.Request) *http.Response {
			if r.URL.Path == "/late" {
				time.Sleep(7 * time.Second)
			}
			return told(429, "Retry-After", "6")
		}
		var all sync.WaitGroup
		all.Go(func() { send(t, c, "https://api.example/late") })
		synctest.Wait()
		send(t, c, endpoint)
		_, err := post(c, 0) // waits for the server for 6 s, then for the limiter, and in the 7th the server says that it wants 6 more
		var wait *httplimit.WaitError
		if !errors.As(err, &wait) || wait.Most > 4*time.Second || wait.Wait != 5*time.Second {
			t.Errorf("error %#v", err)
		}
		within(t, "the error", time.Since(s.start), 8*time.Second, 8*time.Second)
		all.Wait()
	})
}
