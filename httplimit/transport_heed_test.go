package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

func TestTransportHeedsOnlyWhatMatters(t *testing.T) {
	for name, test := range map[string]struct {
		fields []string
		wait   float64 // seconds before the second request
	}{
		"nothing is left":             {[]string{"RateLimit", `"a";r=0;t=9`}, 9},
		"the most restrictive":        {[]string{"RateLimit", `"a";r=0;t=9, "b";r=0;t=30, "c";r=9;t=50`}, 30},
		"old fields":                  {[]string{"X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"}, 9},
		"bytes, and some are left":    {[]string{"RateLimit", `"a";r=1;t=9`, "RateLimit-Policy", `"a";q=9;qu="content-bytes"`}, 0},
		"bytes, and none are left":    {[]string{"RateLimit", `"a";r=0;t=9`, "RateLimit-Policy", `"a";q=9;qu="content-bytes"`}, 9},
		"what is held":                {[]string{"RateLimit", `"a";r=0;t=9`, "RateLimit-Policy", `"a";q=9;qu="concurrent-requests"`}, 0},
		"no window":                   {[]string{"RateLimit", `"a";r=0`}, 0},
		"malformed":                   {[]string{"RateLimit", `"a";r=0;t=9, b=`}, 0},
		"out of a cache":              {[]string{"RateLimit", `"a";r=0;t=9`, "Age", "3"}, 0},
		"more names than are kept":    {[]string{"RateLimit", manyNames(`"%d";r=50;t=50`) + `, "a";r=0;t=9`}, 9},
		"a wait that is none, by 429": {[]string{"Retry-After", "0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, httplimit.TransportOptions{}, replies(fixed(200, test.fields...), fixed(200)), func(t *testing.T, s *fakeServer, c *http.Client) {
				send(t, c, endpoint)
				send(t, c, endpoint)
				within(t, "the second", s.came[1], seconds(test.wait), seconds(1.1*test.wait))
			})
		})
	}
}

func manyNames(format string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, format, i)
		if i < 39 {
			b.WriteString(", ")
		}
	}
	return b.String()
}

// What a client is to a server by its token, another token is not.
func TestTransportKeepsKeysApart(t *testing.T) {
	key := func(r *http.Request) string { return r.Header.Get("Authorization") }
	answer := func(r *http.Request) *http.Response {
		if key(r) == "a" {
			return told(429, "Retry-After", "9")
		}
		return told(200)
	}
	bubble(t, httplimit.TransportOptions{Key: key}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		for _, token := range []string{"a", "b", "a"} {
			r, _ := http.NewRequest(http.MethodGet, endpoint, nil)
			r.Header.Set("Authorization", token)
			if _, err := c.Do(r); err != nil {
				t.Fatal(err)
			}
		}
		within(t, "b", s.came[1], 0, 0)
		within(t, "a", s.came[2], 9*time.Second, 10*time.Second)
	})
}

// From a client with a Transport to a server with the middleware, over a real connection: nothing is denied.
func TestTransportAgainstTheMiddleware(t *testing.T) {
	limiter, err := weir.New(weir.MustParseLimit("4/1s"))
	if err != nil {
		t.Fatal(err)
	}
	limit, err := httplimit.New(limiter, httplimit.Options{Name: "api"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") })))
	defer server.Close()
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	one := func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); string(body) != "served" || err != nil {
			t.Errorf("%s: %q, %v", answer.Status, body, err)
		}
	}
	one()
	var all sync.WaitGroup
	for range 7 {
		all.Go(one)
	}
	all.Wait()
}
