package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

// A client that sends no more than 50 requests a second to each server, waits when a server says so, and sends again what was denied, twice at most.
func ExampleNewTransport() {
	limiter, err := weir.New(weir.MustParseLimit("50/1s"))
	if err != nil {
		fmt.Println(err)
		return
	}
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{Limiter: limiter, Retries: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()

	first := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if first {
			first = false
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	start := time.Now()
	answer, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status, time.Since(start) >= time.Second)
	// Output: 200 OK true
}

// Who can't wait as long as a server asks is told so at once, and when to come back.
func ExampleWaitError() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	transport, err := httplimit.NewTransport(httplimit.TransportOptions{MaxWait: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer transport.CloseIdleConnections()
	for range 2 {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, err := transport.RoundTrip(request)
		if wait, ok := errors.AsType[*httplimit.WaitError](err); ok {
			fmt.Println(wait.Error() != "", wait.Wait > 59*time.Minute, wait.Until.After(time.Now()), wait.Unwrap())
			return
		}
		fmt.Println(answer.Status)
		answer.Body.Close()
	}
	// Output:
	// 429 Too Many Requests
	// true true true <nil>
}
