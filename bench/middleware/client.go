package middleware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
)

// addrBytes is the length of every address, with its port.
const addrBytes = len("172.100.100.100:54321")

// keyField is where a request says its API key, which is its address too, so that there are as many.
const keyField = "X-Api-Key"

// clients is how many there are where there are many.
const clients = 100_000

// A traffic is a sequence of requests: their clients' addresses, one after another in one string, so that an address is in cache as one
// just accepted is, and is not the memory that a limiter may have kept.
type traffic string

func (t traffic) len() int { return len(t) / addrBytes }

func (t traffic) addr(i int) string { return string(t[i*addrBytes : (i+1)*addrBytes]) }

// each is a request of each client.
func each(n int) traffic {
	return trafficOf(n, func(i int) int { return i })
}

// uniform is n requests, each of any client with equal chance. It is the same in every process.
func uniform(n int) traffic {
	r := rand.New(rand.NewPCG(20, 1)) // #nosec G404 -- the same draws in every process are wanted
	return trafficOf(n, func(int) int { return r.IntN(clients) })
}

func trafficOf(n int, client func(int) int) traffic {
	var b strings.Builder
	for i := range n {
		c := client(i)
		fmt.Fprintf(&b, "172.1%02d.1%02d.1%02d:54321", c/10_000%100, c/100%100, c%100)
	}
	return traffic(b.String())
}

// A caller makes requests of one handler, one after another, with one request and one response that are used again: what is allocated, the middleware allocates.
type caller struct {
	handler  http.Handler
	request  *http.Request
	response response
}

func newCaller(h http.Handler) (*caller, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background()) // as a server's requests have
	r := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: "example.com", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: "/",
		Header: http.Header{"User-Agent": {"bench"}, keyField: {""}},
	}).WithContext(ctx)
	return &caller{handler: h, request: r, response: response{header: http.Header{}}}, cancel
}

// call makes a request and returns the status of its answer.
func (c *caller) call(addr string) int {
	c.request.RemoteAddr = addr
	c.request.Header[keyField][0] = addr
	clear(c.response.header)
	c.response.status, c.response.bytes = 0, 0
	c.handler.ServeHTTP(&c.response, c.request)
	return c.response.status
}

// A response takes an answer and keeps its header fields, its status and how long its body is.
type response struct {
	header        http.Header
	status, bytes int
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.bytes += len(p)
	return len(p), nil
}

// WriteString implements io.StringWriter, as net/http's responses do.
func (r *response) WriteString(s string) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.bytes += len(s)
	return len(s), nil
}

// noContent is the handler that all middleware is around.
func noContent(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
