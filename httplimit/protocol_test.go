package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/policy"
)

func TestHTTP2(t *testing.T) {
	for name, opts := range map[string]httplimit.Options{"plain": {}, "charged": {Charge: admission.Successes}} {
		server := httptest.NewUnstartedServer(limit(t, newLimiter(t, "2/1h", weir.WithName("a")), opts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
			fmt.Fprint(w, r.Proto)
		})))
		server.EnableHTTP2 = true
		server.StartTLS()
		t.Cleanup(server.Close)
		for _, want := range []int{200, 200, 429} {
			response, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || response.StatusCode != want || len(remaining(t, response.Header)) != 1 {
				t.Errorf("%s: %d %q %v, %v", name, response.StatusCode, body, response.Header, err)
			}
			switch {
			case want == 200 && (string(body) != "HTTP/2.0" || response.Trailer.Get("X-Sum") != "7"):
				t.Errorf("%s: %q with the trailer %v", name, body, response.Trailer)
			case want == 429:
				(reply{response.StatusCode, response.Header, string(body)}).problem(t)
			}
		}
	}
}

// Requests without a path, and their refusals, are as others.
func TestOddRequests(t *testing.T) {
	set := newSet(t, `policies: [{name: all, key: [client_ip], limits: [3/1h]}]`, policy.Options{})
	for _, h := range []http.Handler{limit(t, newLimiter(t, "3/1h"), httplimit.Options{}, okHandler), limit(t, set, httplimit.Options{}, okHandler)} {
		address := strings.TrimPrefix(serve(t, h), "http://")
		for i, line := range []string{"OPTIONS * HTTP/1.1", "CONNECT example.org:443 HTTP/1.1", "GET http://example.org/%2e%2e/x?%zz HTTP/1.0", "PRI /x HTTP/1.1", "HEAD / HTTP/1.1"} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "%s\r\nHost: example.org\r\nConnection: close\r\n\r\n", line)
			response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(line)[0]})
			if err != nil {
				t.Fatal(line, err)
			}
			want := 200
			if i >= 3 {
				want = 429
			}
			if response.StatusCode != want || len(list(t, response.Header, "RateLimit")) != 1 {
				t.Errorf("%s: %d %v, want %d", line, response.StatusCode, response.Header, want)
			}
			_ = conn.Close()
		}
	}
}

// A connection that is taken over, such as a WebSocket, is in flight until its handler returns.
func TestHijackedConnectionIsInFlight(t *testing.T) {
	taken, done := make(chan struct{}), make(chan struct{})
	returned := make(chan struct{}, 9)
	l := newLimiter(t, "concurrent 1 lease=1h")
	h := limit(t, l, httplimit.Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		close(taken)
		<-done
	}))
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { returned <- struct{}{} }()
		h.ServeHTTP(w, r)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	<-taken
	wantStatus(t, url, 429, 429)
	close(done)
	for range 3 {
		<-returned
	}
	wantStatus(t, url, 200)
}

// A lease is given back also when the handler panics.
func TestLeaseEndsWithAPanic(t *testing.T) {
	for _, charge := range []bool{false, true} {
		h := limit(t, newSet(t, `policies: [{name: a, key: all, limits: ["concurrent 1 lease=1h"]}]`, policy.Options{}), chargeIf(charge), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				panic(http.ErrAbortHandler)
			}
		}))
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPost, http.MethodGet} {
			func() {
				defer func() { _ = recover() }()
				if got := one(h, method, nil); got.status != 200 {
					t.Errorf("%s: %d %s", method, got.status, got.body)
				}
			}()
		}
	}
}

func chargeIf(charge bool) httplimit.Options {
	if charge {
		return httplimit.Options{Charge: admission.Successes}
	}
	return httplimit.Options{}
}
