package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

// A slowBody has nothing to read until it is closed.
type slowBody struct{ closed chan struct{} }

func (b slowBody) Read([]byte) (int, error) { <-b.closed; return 0, errors.New("closed") }
func (b slowBody) Close() error             { close(b.closed); return nil }

// A denial whose body does not come holds up nobody: the request is sent again when it may.
func TestTransportDenialWithoutABody(t *testing.T) {
	slow := func() *http.Response {
		answer := told(429, "Retry-After", "1")
		answer.Body = slowBody{make(chan struct{})}
		return answer
	}
	bubble(t, httplimit.TransportOptions{Retries: 1}, replies(slow, fixed(200)), func(t *testing.T, s *fakeServer, c *http.Client) {
		if answer := send(t, c, endpoint); answer.StatusCode != http.StatusOK {
			t.Errorf("status %d", answer.StatusCode)
		}
		within(t, "again", s.came[1], time.Second, 1100*time.Millisecond)
	})
}

type counted struct{ *strings.Reader }

func (counted) Close() error { return nil }

// What can't wait for the limiter gets the denial as its answer, with its body, of which a bounded part is kept.
func TestTransportDenialWhenThePaceIsTooSlow(t *testing.T) {
	for name, test := range map[string]struct {
		body io.ReadCloser
		want string
		err  error
	}{
		"short":         {io.NopCloser(strings.NewReader("denied")), "denied", nil},
		"as long as is": {io.NopCloser(strings.NewReader(strings.Repeat("x", 64<<10))), strings.Repeat("x", 64<<10), nil},
		"long":          {io.NopCloser(strings.NewReader(strings.Repeat("x", 65<<10))), strings.Repeat("x", 64<<10), io.ErrUnexpectedEOF},
		"very long":     {&counted{strings.NewReader(strings.Repeat("x", 1<<20))}, strings.Repeat("x", 64<<10), io.ErrUnexpectedEOF},
		"none":          {slowBody{nil}, "", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			paced(t, "1/10s", httplimit.TransportOptions{Retries: 2}, func(t *testing.T, s *fakeServer, c *http.Client, _ *weir.Limiter) {
				s.answer = func(*http.Request) *http.Response {
					answer := told(429, "Retry-After", "1")
					if answer.Body = test.body; name == "none" {
						answer.Body = slowBody{make(chan struct{})}
					}
					return answer
				}
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
				answer, err := c.Do(r)
				if err != nil || answer.StatusCode != http.StatusTooManyRequests || len(s.came) != 1 {
					t.Fatalf("%v, %v; %d were sent", answer, err, len(s.came))
				}
				if rest, ok := test.body.(*counted); ok && rest.Len() == 0 {
					t.Error("all of it was read")
				}
				if text, err := io.ReadAll(answer.Body); string(text) != test.want || !errors.Is(err, test.err) {
					t.Errorf("%d bytes, %v; want %d, %v", len(text), err, len(test.want), test.err)
				}
			})
		})
	}
}

// Who has given up while it waited to be sent again learns that, and not of the denial.
func TestTransportGivesUpBetween(t *testing.T) {
	bubble(t, httplimit.TransportOptions{Retries: 1}, replies(fixed(429, "Retry-After", "9")), func(t *testing.T, s *fakeServer, c *http.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
		if answer, err := c.Do(r); !errors.Is(err, context.Canceled) || len(s.came) != 1 {
			t.Errorf("%v, %v", answer, err)
		}
	})
}

// A request that panics on its way is under way no longer.
func TestTransportOfABaseThatPanics(t *testing.T) {
	answer := replies(fixed(200, "RateLimit", `"a";r=1;t=600`), func() *http.Response { panic("base") }, fixed(200))
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is the caller's to see")
				}
			}()
			send(t, c, endpoint)
		}()
		send(t, c, endpoint)
		within(t, "the next", s.came[2], 0, 0)
	})
}

// A limiter whose limit becomes one of what is under way is no pace: nothing gives back what requests would hold.
func TestTransportOfALimiterThatBecomesConcurrent(t *testing.T) {
	paced(t, "10/1s", httplimit.TransportOptions{}, func(t *testing.T, s *fakeServer, c *http.Client, pace *weir.Limiter) {
		s.answer = replies(fixed(200, "RateLimit", `"a";r=1;t=600`))
		send(t, c, endpoint)
		if err := pace.SetLimit(weir.MustParseLimit("concurrent 5 lease=1m")); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			if closed, err := post(c, 0); err == nil || !strings.Contains(err.Error(), "concurrent 5") || closed != 1 {
				t.Errorf("error %v; the body was closed %d times", err, closed)
			}
		}
		if err := pace.SetLimit(weir.MustParseLimit("10/1s")); err != nil {
			t.Fatal(err)
		}
		send(t, c, endpoint)
		if len(s.came) != 2 {
			t.Errorf("came at %v", s.came)
		}
	})
}
