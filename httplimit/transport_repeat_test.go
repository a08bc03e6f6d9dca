package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

// What is denied is sent again when it may, with its body.
func TestTransportRetries(t *testing.T) {
	answer := replies(fixed(429, "Retry-After", "5"), fixed(429, "RateLimit", `"a";r=0;t=7`), fixed(200))
	bubble(t, httplimit.TransportOptions{Retries: 2}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		answer, err := c.Post(endpoint, "text/plain", strings.NewReader("sent"))
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		if !slices.Equal(s.bodies, []string{"sent", "sent", "sent"}) {
			t.Errorf("bodies %q", s.bodies)
		}
		within(t, "the second", s.came[1], 5*time.Second, 5500*time.Millisecond)
		within(t, "the third", s.came[2]-s.came[1], 7*time.Second, 7700*time.Millisecond)
	})
}

// A server that does not say when is asked again after a second, then two, up to a half less by chance.
func TestTransportBacksOff(t *testing.T) {
	bubble(t, httplimit.TransportOptions{Retries: 3}, replies(fixed(429)), func(t *testing.T, s *fakeServer, c *http.Client) {
		if answer := send(t, c, endpoint); answer.StatusCode != http.StatusTooManyRequests || len(s.came) != 4 {
			t.Fatal(answer.StatusCode, s.came)
		}
		for i := range 3 {
			longest := time.Second << i
			within(t, fmt.Sprint(i), s.came[i+1]-s.came[i], longest/2, longest)
		}
	})
}

func TestTransportRetriesOnlyWhatMayBe(t *testing.T) {
	again := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
	broken := func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	for name, test := range map[string]struct {
		method  string
		body    bool
		getBody func() (io.ReadCloser, error)
		header  string
		status  int
		fields  []string
		want    int
	}{
		"no body":                        {"GET", false, nil, "", 429, []string{"Retry-After", "1"}, 2},
		"a body that can be had again":   {"POST", true, again, "", 429, []string{"Retry-After", "1"}, 2},
		"a body that can't":              {"POST", true, nil, "", 429, []string{"Retry-After", "1"}, 1},
		"a body that could, and is gone": {"POST", true, broken, "", 429, []string{"Retry-After", "1"}, 1},
		"no capacity":                    {"GET", false, nil, "", 503, []string{"Retry-After", "1"}, 2},
		"no capacity, no time":           {"GET", false, nil, "", 503, nil, 1},
		"no capacity, not idempotent":    {"POST", true, again, "", 503, []string{"Retry-After", "1"}, 1},
		"no capacity, with a key":        {"POST", true, again, "Idempotency-Key", 503, []string{"Retry-After", "1"}, 2},
		"another error":                  {"GET", false, nil, "", 500, []string{"Retry-After", "1"}, 1},
		"done":                           {"GET", false, nil, "", 200, []string{"Retry-After", "1"}, 1},
		"too long":                       {"GET", false, nil, "", 429, []string{"Retry-After", "100"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, httplimit.TransportOptions{Retries: 1}, replies(fixed(test.status, test.fields...)), func(t *testing.T, s *fakeServer, c *http.Client) {
				r, _ := http.NewRequest(test.method, endpoint, nil)
				if test.body {
					r.Body = io.NopCloser(strings.NewReader("x"))
				}
				if r.GetBody = test.getBody; test.header != "" {
					r.Header.Set(test.header, "1")
				}
				answer, err := c.Transport.RoundTrip(r)
				if err != nil || len(s.came) != test.want {
					t.Fatalf("sent %d times, want %d; error %v", len(s.came), test.want, err)
				}
				if text, err := io.ReadAll(answer.Body); string(text) != "body" || err != nil {
					t.Errorf("the body of the answer is %q, %v", text, err)
				}
			})
		})
	}
}

// A denial that can't be waited for is the answer, and at once.
func TestTransportRetryBeyondTheDeadline(t *testing.T) {
	for _, fields := range [][]string{{"Retry-After", "5"}, nil} {
		bubble(t, httplimit.TransportOptions{Retries: 5}, replies(fixed(429, fields...)), func(t *testing.T, s *fakeServer, c *http.Client) {
			ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
			answer, err := c.Do(r)
			if err != nil || answer.StatusCode != http.StatusTooManyRequests || time.Since(s.start) > 0 {
				t.Errorf("%v, %v, after %v", answer, err, time.Since(s.start))
			}
		})
	}
}

// The request is the caller's: nothing of it is changed.
func TestTransportLeavesTheRequest(t *testing.T) {
	bubble(t, httplimit.TransportOptions{Retries: 1}, replies(fixed(429, "Retry-After", "1"), fixed(200)), func(t *testing.T, _ *fakeServer, c *http.Client) {
		r, _ := http.NewRequest(http.MethodPost, endpoint, strings.NewReader("sent"))
		first, url := r.Body, r.URL.String()
		if _, err := c.Transport.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		if r.Body != first || len(r.Header) != 0 || r.URL.String() != url {
			t.Errorf("changed: %+v", r)
		}
	})
}

// Pitfall H8: what makes no sense is an error of the constructor, which says what would do.
func TestH8TransportOptions(t *testing.T) {
	limiter, err := weir.New(weir.MustParseLimit("concurrent 5 lease=1m"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		opts  httplimit.TransportOptions
	}{
		{"MaxWait", httplimit.TransportOptions{MaxWait: -1}},
		{"Retries", httplimit.TransportOptions{Retries: -1}},
		{"Cost", httplimit.TransportOptions{Cost: func(*http.Request) int64 { return 1 }}},
		{"Limiter", httplimit.TransportOptions{Limiter: limiter}},
		{"Limiter", httplimit.TransportOptions{Limiter: new(weir.Limiter)}},
	} {
		field := c.field
		if _, err := httplimit.NewTransport(c.opts); err == nil || !strings.Contains(err.Error(), "."+field+" is") || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := httplimit.NewTransport(httplimit.TransportOptions{Retries: httplimit.MostRetries + 1}); err == nil {
		t.Error("too many retries are none too many")
	}
	// A request without a URL is the base's to refuse.
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.RoundTrip(&http.Request{Method: http.MethodGet}); err == nil {
		t.Error("a request without a URL is sent")
	}
}
