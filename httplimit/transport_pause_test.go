package httplimit_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// The answer of a request that was sent before a pause says nothing of what is after it: one goes first all the same.
func TestTransportLateAnswers(t *testing.T) {
	for _, late := range [][]string{{"RateLimit", `"a";r=50;t=60`}, nil} {
		answer := func(r *http.Request) *http.Response {
			switch r.URL.Path {
			case "/late":
				time.Sleep(2 * time.Second)
				return told(200, late...)
			case "/denied":
				return told(429, "Retry-After", "5")
			}
			time.Sleep(time.Second)
			return told(200)
		}
		bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
			var all sync.WaitGroup
			all.Go(func() { send(t, c, "https://api.example/late") })
			synctest.Wait()
			send(t, c, "https://api.example/denied")
			for range 3 {
				all.Go(func() { send(t, c, endpoint) })
			}
			all.Wait()
			for i, want := range []float64{0, 1, 1} {
				within(t, fmt.Sprint(late, i), s.came[2+i]-s.came[2], seconds(want), seconds(want))
			}
		})
	}
}

// A request that takes long to be answered, after a pause, holds the others back for two seconds each.
func TestTransportLongPolls(t *testing.T) {
	answer := replies(fixed(429, "Retry-After", "1"), func() *http.Response { time.Sleep(time.Hour); return told(200) })
	bubble(t, httplimit.TransportOptions{MaxWait: 10 * time.Second}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { send(t, c, endpoint) })
		}
		all.Wait()
		for i, want := range []float64{0, 2, 4} {
			within(t, fmt.Sprint(i), s.came[1+i]-s.came[1], seconds(want), seconds(want))
		}
	})
}

// A window that a request which is not answered uses up is over at its end all the same.
func TestTransportWindowEndsWithoutAnAnswer(t *testing.T) {
	answer := replies(fixed(200, "RateLimit", `"a";r=1;t=10`), func() *http.Response { time.Sleep(time.Hour); return told(200) }, fixed(200))
	bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		send(t, c, endpoint)
		var all sync.WaitGroup
		all.Go(func() { send(t, c, endpoint) })
		synctest.Wait()
		send(t, c, endpoint)
		within(t, "the third", s.came[2], 10*time.Second, 11*time.Second)
		all.Wait()
	})
}

// However long a server wants to be left alone, after an hour one request asks again, and the others don't.
func TestTransportAsksAgainAfterAnHour(t *testing.T) {
	for status, fields := range map[int][]string{429: {"Retry-After", "99999999999"}, 503: {"Retry-After", "99999999999"}, 200: {"RateLimit", `"a";r=0;t=99999999999`}} {
		answer := func(*http.Request) *http.Response { time.Sleep(time.Second); return told(status, fields...) }
		bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
			send(t, c, endpoint)
			if _, err := post(c, 0); err == nil {
				t.Error("sent in a pause")
			}
			time.Sleep(time.Hour + 10*time.Second)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { _, _ = post(c, 0) })
			}
			all.Wait()
			if len(s.came) != 2 {
				t.Errorf("%v: came at %v", fields, s.came)
			}
		})
	}
}

// Who would wait longer than an hour waits for what the server says.
func TestTransportWaitsForADay(t *testing.T) {
	answer := replies(fixed(200, "RateLimit", `"a";r=0;t=72000`), fixed(429, "Retry-After", "72000"), fixed(200))
	bubble(t, httplimit.TransportOptions{MaxWait: 24 * time.Hour}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		for range 3 {
			send(t, c, endpoint)
		}
		within(t, "the second", s.came[1], 20*time.Hour, 20*time.Hour+10*time.Second) // which is also as much longer as it can be by chance
		within(t, "the third", s.came[2]-s.came[1], 20*time.Hour, 20*time.Hour+10*time.Second)
	})
}

// After a pause they still go one by one when the server fails, or can't be reached; when its answer says how many may, by the limit that the pause was for, so many do.
func TestTransportWidth(t *testing.T) {
	for name, test := range map[string]struct {
		denial string // what it says of limits
		answer func() *http.Response
		want   []float64
	}{
		"fails":                    {`"a";r=0`, fixed(500), []float64{0, 1, 2, 3}},
		"unreachable":              {`"a";r=0`, func() *http.Response { return nil }, []float64{0, 1, 2, 3}},
		"tells":                    {`"a";r=0`, fixed(200, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 1}},
		"tells of another":         {`"a";r=0`, fixed(200, "RateLimit", `"b";r=50;t=60`), []float64{0, 1, 1, 2}},
		"tells, as its failure":    {`"a";r=0`, fixed(500, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 1}},
		"tells of what had some":   {`"a";r=0, "b";r=9`, fixed(200, "RateLimit", `"b";r=50;t=60`), []float64{0, 1, 1, 2}},
		"tells of what had none":   {`"a";r=0, "b";r=9`, fixed(200, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 1}},
		"tells of one of two":      {`"a";r=0, "b";r=0`, fixed(200, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 2}},
		"tells of one that costs":  {`"a";r=3`, fixed(200, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 1}},
		"tells, of what is not":    {``, fixed(200, "RateLimit", `"a";r=50;t=60`), []float64{0, 1, 1, 2}},
		"tells of another's share": {`"a";r=0;pk=:eA==:`, fixed(200, "RateLimit", `"a";r=50;t=60;pk=:eQ==:`), []float64{0, 1, 1, 2}},
		"served":                   {`"a";r=0`, fixed(200), []float64{0, 1, 1, 2}},
		"denies":                   {`"a";r=0`, fixed(429), []float64{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := replies(fixed(429, "RateLimit", test.denial), func() *http.Response { time.Sleep(time.Second); return test.answer() }) // a pause without a time
			bubble(t, httplimit.TransportOptions{}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
				send(t, c, endpoint)
				var all sync.WaitGroup
				for range len(test.want) {
					all.Go(func() { _, _ = post(c, 0) })
				}
				all.Wait()
				for i, want := range test.want {
					within(t, fmt.Sprint(i), s.came[1+i]-s.came[1], seconds(want), seconds(want))
				}
			})
		})
	}
}

// Parts of a server that have limits of their own, told apart by Key: none is denied, and none waits for another.
func TestTransportPartsByKey(t *testing.T) {
	var parts map[string]*weir.Limiter
	answer := func(r *http.Request) *http.Response {
		time.Sleep(time.Millisecond)
		l := parts[r.URL.Path]
		d, err := l.Take(r.Context(), "client", 1)
		if err != nil {
			t.Error(err)
		}
		answer := told(200)
		if !d.Allowed {
			answer = told(429, "Retry-After", header.RetryAfter(d.RetryAfter))
		}
		header.Draft11.Write(answer.Header, []admission.Standing{{Name: r.URL.Path, Limit: l.Limit(), Decision: d}}, time.Now())
		return answer
	}
	byPath := func(r *http.Request) string { return r.URL.Path }
	bubble(t, httplimit.TransportOptions{Key: byPath}, answer, func(t *testing.T, s *fakeServer, c *http.Client) {
		parts = map[string]*weir.Limiter{"/a": newPace(t, "10/1s burst=1"), "/b": newPace(t, "100/1s")}
		var all sync.WaitGroup
		for path := range parts {
			send(t, c, "https://api.example"+path)
			for range 5 {
				all.Go(func() {
					for range 10 {
						send(t, c, "https://api.example"+path)
					}
					if took := time.Since(s.start); path == "/b" && took > time.Second {
						t.Errorf("%s took %v", path, took)
					}
				})
			}
		}
		all.Wait()
		if s.denied > 0 || len(s.came) != 102 {
			t.Errorf("%d of %d requests were denied", s.denied, len(s.came))
		}
	})
}

// What a server says in milliseconds is kept to as such: a second would leave most of the limit unused.
func TestTransportMilliseconds(t *testing.T) {
	bubble(t, httplimit.TransportOptions{}, replies(fixed(200, "RateLimit", `"a";r=0;t=1;weir-ms=50`)), func(t *testing.T, s *fakeServer, c *http.Client) {
		for range 21 {
			send(t, c, endpoint)
		}
		within(t, "the last", s.came[20], time.Second, 1100*time.Millisecond)
	})
}
