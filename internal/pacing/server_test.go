package pacing

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/httplimit/header"
)

// However many servers a client asks, what is kept is bounded; what a server with a request under way said is kept.
func TestServersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Servers{}
		ask := func(name string, response Response) {
			var k Ticket
			if err := s.Enter(t.Context(), name, time.Minute, &k); err != nil {
				t.Fatal(err)
			}
			s.Answered(&k, response)
		}
		ask("plain", Response{Outcome: Served})
		if len(s.all) != 0 {
			t.Errorf("%d servers are kept that said nothing", len(s.all))
		}
		var busy Ticket
		if err := s.Enter(t.Context(), "busy", time.Minute, &busy); err != nil {
			t.Fatal(err)
		}
		for i := range 10 * mostServers {
			ask(fmt.Sprint(i), Response{Denied, header.Report{Retry: true, RetryAfter: time.Hour}})
			if len(s.all) > 2*mostServers {
				t.Fatalf("%d servers are kept", len(s.all))
			}
		}
		if s.all["busy"] != busy.server {
			t.Error("the server with a request under way is forgotten")
		}
		time.Sleep(2 * time.Hour) // over, and forgotten when there is need
		for i := range 2 * mostServers {
			ask(fmt.Sprint("new", i), Response{Denied, header.Report{Retry: true, RetryAfter: time.Hour}})
		}
		if len(s.all) > 2*mostServers {
			t.Errorf("%d servers are kept", len(s.all))
		}
	})
}

// The order of waiters is that in which they first came, also of one that has to wait again.
func TestWaitersKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Servers{}
		var Tickets [4]Ticket
		if err := s.Enter(t.Context(), "s", time.Hour, &Tickets[0]); err != nil { // came first
			t.Fatal(err)
		}
		var other Ticket
		if err := s.Enter(t.Context(), "s", time.Hour, &other); err != nil {
			t.Fatal(err)
		}
		s.Answered(&other, Response{Denied, header.Report{Retry: true, RetryAfter: time.Minute}})
		order := make(chan int, 3)
		enter := func(i int) {
			go func() {
				if err := s.Enter(context.Background(), "s", time.Hour, &Tickets[i]); err != nil {
					t.Error(err)
				}
				order <- i
				time.Sleep(time.Second)
				s.Answered(&Tickets[i], Response{Outcome: Served})
			}()
			synctest.Wait()
		}
		enter(1)
		enter(2)
		if s.Confirm(&Tickets[0]) {
			t.Error("a Ticket is good in a pause")
		}
		enter(0)
		time.Sleep(time.Hour)
		for want := range 3 {
			if got := <-order; got != want {
				t.Errorf("%d went before %d", got, want)
			}
		}
	})
}

// Whatever servers say, and in whatever order answers come: what is let go of a window is never more than what the latest answer that could count it has left, and nothing is
// let go in a pause.
func TestServerAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
		var flying []Ticket
		var pauseEnd time.Time
		// The server: a window of so many requests, counted when they come; they come in any order.
		size := rapid.Int64Range(1, 8).Draw(t, "size")
		left, end := size, now.Add(10*time.Second)
		counted := map[uint64]int64{} // what the server had left after each request
		informed := false             // since the window began
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 300).Draw(t, "ms")) * time.Millisecond)
			if !now.Before(end) {
				left, end, informed = size, now.Add(10*time.Second), false
			}
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0: // one more, if it may
				if o.open(now) {
					if now.Before(pauseEnd) {
						t.Fatal("let go in a pause")
					}
					o.sent++
					f := flight{o.sent, now}
					o.flights = append(o.flights, f)
					flying = append(flying, Ticket{flight: f})
				}
			case 1: // one comes to the server
				for _, k := range flying {
					if _, ok := counted[k.flight.number]; !ok {
						left--
						counted[k.flight.number] = left
						if left < 0 && informed {
							t.Fatalf("a request too many: %d were left", size)
						}
						break
					}
				}
			case 2: // one is answered
				for i, k := range flying {
					n, ok := counted[k.flight.number]
					if !ok {
						continue
					}
					flying = append(flying[:i:i], flying[i+1:]...)
					o.land(&k)
					o.expire(now)
					if n < 0 {
						pauseEnd = end
						o.learn(Response{Denied, header.Report{Retry: true, RetryAfter: end.Sub(now)}}, k.flight, now)
						break
					}
					o.learn(Response{Served, header.Report{Limits: []header.State{{Name: "w", Remaining: n, Within: end.Sub(now)}}}}, k.flight, now)
					informed = informed || len(flying) == 0
					break
				}
			}
		}
	})
}
