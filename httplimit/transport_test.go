package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// A fakeServer answers requests in the process, and keeps when each came.
type fakeServer struct {
	answer func(*http.Request) *http.Response // nil: 200

	mu     sync.Mutex
	start  time.Time
	came   []time.Duration
	bodies []string
	denied int
}

func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.came = append(s.came, time.Since(s.start))
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		s.bodies = append(s.bodies, string(body))
	}
	s.mu.Unlock()
	if s.answer == nil {
		return told(200), nil
	}
	answer := s.answer(r)
	if answer == nil {
		return nil, errors.New("no connection")
	}
	if answer.StatusCode == http.StatusTooManyRequests {
		s.mu.Lock()
		s.denied++
		s.mu.Unlock()
	}
	return answer, nil
}

// count returns how many requests came so far.
func (s *fakeServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.came)
}

// told is an answer with header fields: name, value, and so on.
func told(status int, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("body"))}
}

// replies answers with each in turn, and the last one for ever.
func replies(all ...func() *http.Response) func(*http.Request) *http.Response {
	var mu sync.Mutex
	n := 0
	return func(*http.Request) *http.Response {
		mu.Lock()
		n++
		next := all[min(n, len(all))-1]
		mu.Unlock()
		return next()
	}
}

func fixed(status int, fields ...string) func() *http.Response {
	return func() *http.Response { return told(status, fields...) }
}

// bubble runs a test on its own time, with a server and a client that keeps to what it says.
func bubble(t *testing.T, opts httplimit.TransportOptions, answer func(*http.Request) *http.Response, test func(*testing.T, *fakeServer, *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{answer: answer, start: time.Now()}
		opts.Base = server
		transport, err := httplimit.NewTransport(opts)
		if err != nil {
			t.Fatal(err)
		}
		test(t, server, &http.Client{Transport: transport})
	})
}

const endpoint = "https://api.example/v1"

func send(t *testing.T, c *http.Client, endpoint string) *http.Response {
	t.Helper()
	answer, err := c.Get(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// within fails if the time is not from the first to the second.
func within(t *testing.T, what string, got, first, last time.Duration) {
	t.Helper()
	if got < first || got > last {
		t.Errorf("%s after %v, want %v to %v", what, got, first, last)
	}
}

// A server of any limit, which tells of it, denies nothing to clients that heed it, from the first answer on.
func TestTransportIsNotDenied(t *testing.T) {
	for _, text := range []string{
		"10/1s", "3/2s burst=1", "20/1s burst=1", "100/1m", "fixed-window 5/10s", "quota-reset 7/3s", "sliding-log 4/5s", "sliding-window 6/10s", "sliding-buckets 6/10s cells=5",
		"min-interval 2/1s", "refill-bucket 5/4s burst=9", "hybrid 5/10s", "exponential 6/10s", "cooldown 4/8s", "calendar 4/day",
	} {
		for _, formats := range []header.Formats{header.Draft11, header.XRateLimit, header.XRateLimitUnix} {
			t.Run(fmt.Sprint(text, formats), func(t *testing.T) {
				var limiter *weir.Limiter
				limit := weir.MustParseLimit(text)
				answer := func(*http.Request) *http.Response {
					time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
					d, err := limiter.Take(context.Background(), "client", 1)
					if err != nil {
						t.Error(err)
					}
					answer := told(200)
					if !d.Allowed {
						answer = told(429, "Retry-After", header.RetryAfter(d.RetryAfter))
					}
					formats.Write(answer.Header, []admission.Standing{{Name: "n", Limit: limit, Decision: d}}, time.Now())
					time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
					return answer
				}
				bubble(t, httplimit.TransportOptions{MaxWait: 30 * 24 * time.Hour}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
					limiter, _ = weir.New(limit)
					send(t, c, endpoint)
					var all sync.WaitGroup
					for range 25 {
						time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
						all.Go(func() { send(t, c, endpoint) })
					}
					all.Wait()
					if s.denied > 0 || len(s.came) != 26 {
						t.Errorf("%d of %d requests were denied, came at %v", s.denied, len(s.came), s.came)
					}
				})
			})
		}
	}
}

func TestTransportHonoursRetryAfter(t *testing.T) {
	for _, status := range []int{429, 503} {
		bubble(t, httplimit.TransportOptions{}, replies(fixed(status, "Retry-After", "5"), fixed(200)), func(t *testing.T, s *fakeServer, c *http.Client) {
			if answer := send(t, c, endpoint); answer.StatusCode != status {
				t.Errorf("status %d, want the %d of the server", answer.StatusCode, status)
			}
			send(t, c, "https://other.example/")
			send(t, c, "https://API.example:443/v2") // the same origin
			within(t, "the other origin", s.came[1], 0, 0)
			within(t, "the same origin", s.came[2], 5*time.Second, 5500*time.Millisecond)
		})
	}
	// On another answer it is about something else.
	bubble(t, httplimit.TransportOptions{}, replies(fixed(202, "Retry-After", "5")), func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		send(t, c, endpoint)
		within(t, "the second", s.came[1], 0, 0)
	})
}

// Pitfall H1: a Retry-After that is a date.
func TestH1TransportHonoursADate(t *testing.T) {
	answer := func(*http.Request) *http.Response {
		return told(429, "Retry-After", time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat))
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		send(t, c, endpoint)
		within(t, "the second", s.came[1], 20*time.Second, 22*time.Second)
	})
}

// Retry-After wins over a window that is longer, and over windows told before.
func TestTransportRetryAfterWins(t *testing.T) {
	answer := replies(fixed(200, "RateLimit", `"day";r=0;t=1`), fixed(429, "Retry-After", "5", "RateLimit", `"day";r=0;t=50`), fixed(200))
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		for range 3 {
			send(t, c, endpoint)
		}
		within(t, "the second", s.came[1], time.Second, 1100*time.Millisecond)
		within(t, "the third", s.came[2]-s.came[1], 5*time.Second, 5500*time.Millisecond)
	})
}

// Retry-After also wins over what another answer said of a limit before.
func TestTransportRetryAfterWinsOverWhatWasSaid(t *testing.T) {
	answer := func(r *http.Request) *http.Response {
		if r.URL.Path == "/late" {
			time.Sleep(2 * time.Second)
			return told(429, "Retry-After", "5")
		}
		return told(200, "RateLimit", `"a";r=0;t=50`)
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		var all sync.WaitGroup
		all.Go(func() { send(t, c, "https://api.example/late") })
		synctest.Wait()
		send(t, c, endpoint)
		send(t, c, endpoint)
		within(t, "the third", s.came[2], 7*time.Second, 7500*time.Millisecond)
		all.Wait()
	})
}

// A later answer may leave more: that of a request that was sent when the earlier one was known.
func TestTransportLaterAnswersMayLeaveMore(t *testing.T) {
	slow := func() *http.Response { time.Sleep(time.Second); return told(200, "RateLimit", `"a";r=5;t=60`) }
	bubble(t, httplimit.TransportOptions{}, replies(fixed(200, "RateLimit", `"a";r=1;t=60`), slow), func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		send(t, c, endpoint)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { send(t, c, endpoint) })
		}
		all.Wait()
		within(t, "the last", s.came[6], time.Second, time.Second)
	})
}

// Of two pauses the longer one stands.
func TestTransportKeepsTheLongerPause(t *testing.T) {
	answer := func(r *http.Request) *http.Response {
		if r.URL.Path == "/late" {
			time.Sleep(2 * time.Second)
			return told(429, "Retry-After", "5")
		}
		return told(429, "Retry-After", "30")
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		var all sync.WaitGroup
		all.Go(func() { send(t, c, "https://api.example/late") })
		synctest.Wait()
		send(t, c, endpoint)
		all.Wait()
		send(t, c, endpoint)
		within(t, "the third", s.came[2], 30*time.Second, 33*time.Second)
	})
}

// An answer that is silent of a limit, because it has none or another, was not counted by it. While it is under way nobody knows.
func TestTransportSilentAnswers(t *testing.T) {
	silent := func() *http.Response { time.Sleep(time.Second); return told(200, "RateLimit", `"b";r=100;t=30`) }
	bubble(t, httplimit.TransportOptions{}, replies(fixed(200, "RateLimit", `"a";r=2;t=30`), silent), func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { send(t, c, endpoint) })
		}
		all.Wait()
		for i, want := range []float64{0, 0, 0, 1, 1, 2} {
			within(t, fmt.Sprint(i), s.came[i], seconds(want), seconds(want))
		}
	})
}

// The clients of a server that has denied them do not all come back at one instant.
func TestTransportPausesDiffer(t *testing.T) {
	bubble(t, httplimit.TransportOptions{Retries: 1, MaxWait: 2 * time.Minute}, replies(fixed(429, "Retry-After", "100")), func(t *testing.T, s *fakeServer, c *http.Client) {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { send(t, c, fmt.Sprintf("https://%d.example/", i)) })
		}
		all.Wait()
		times := map[time.Duration]bool{}
		for _, at := range s.came[20:] {
			within(t, "again", at, 100*time.Second, 110*time.Second)
			times[at] = true
		}
		if len(times) < 15 {
			t.Errorf("20 clients come back at %d times", len(times))
		}
	})
}

// A server that asks for as long as requests can wait at most is waited for.
func TestTransportWaitsAMinute(t *testing.T) {
	for range 10 {
		bubble(t, httplimit.TransportOptions{Retries: 1}, replies(fixed(429, "Retry-After", "60"), fixed(200)), func(t *testing.T, s *fakeServer, c *http.Client) {
			if answer := send(t, c, endpoint); answer.StatusCode != http.StatusOK {
				t.Fatalf("status %d after %v", answer.StatusCode, time.Since(s.start))
			}
			within(t, "again", s.came[1], time.Minute, time.Minute)
		})
	}
}

// After a pause one request goes, and of a server that does not say how many more it lets pass, one more for each answer. They go in the order in which they came.
func TestTransportComesBackOneByOne(t *testing.T) {
	var mu sync.Mutex
	var order []string
	answer := func(r *http.Request) *http.Response {
		mu.Lock()
		order = append(order, r.URL.Path)
		mu.Unlock()
		if r.URL.Path == "/first" {
			return told(429, "Retry-After", "10")
		}
		time.Sleep(time.Second)
		return told(200)
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, "http://api.example/first")
		var all sync.WaitGroup
		for i := range 7 {
			all.Go(func() { send(t, c, fmt.Sprintf("http://api.example/%d", i)) })
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		if got := strings.Join(order, ""); got[:len("/first/0")] != "/first/0" {
			t.Errorf("order %s, want 0 first", got)
		}
		for i, want := range []float64{0, 1, 1, 2, 2, 2, 2} { // seconds after the first
			within(t, fmt.Sprint(i), s.came[i+1]-s.came[1], seconds(want), seconds(want))
		}
	})
}

// No more is sent than what is left, requests that are under way counted, whether or not the server had counted them.
func TestTransportCountsWhatIsUnderWay(t *testing.T) {
	answer := replies(
		fixed(200, "RateLimit", `"a";r=100;t=60, "b";r=3;t=20`),
		func() *http.Response {
			time.Sleep(time.Second)
			return told(200, "RateLimit", `"a";r=90;t=60, "b";r=0;t=19`)
		},
	)
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { send(t, c, endpoint) })
		}
		synctest.Wait()
		if n := s.count(); n != 4 {
			t.Errorf("%d requests were sent, want 1 and 3", n)
		}
		all.Wait()
		within(t, "the fourth", s.came[4], 20*time.Second, 22*time.Second)
	})
}

// Requests that take long to be answered were counted long ago: they hold up no others.
func TestTransportSlowAnswersHoldUpNoOthers(t *testing.T) {
	answer := func(r *http.Request) *http.Response {
		if r.URL.Path == "/slow" {
			time.Sleep(time.Hour)
		}
		return told(200, "RateLimit", `"a";r=2;t=5`)
	}
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		for range 10 {
			go func() { send(t, c, "http://api.example/slow") }()
		}
		time.Sleep(time.Minute)
		for range 5 {
			send(t, c, "http://api.example/quick")
		}
		within(t, "the last", s.came[14], time.Minute, time.Minute)
		time.Sleep(2 * time.Hour)
	})
}
