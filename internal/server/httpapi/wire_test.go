package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/httpapi"
)

// start serves on a free port and returns the address.
func start(t *testing.T, s *httpapi.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what is still open is not waited for
		_ = s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exchangeRaw writes what is no HTTP, or hardly, and returns all that comes back until the server closes.
func exchangeRaw(t *testing.T, addr, text string) string {
	t.Helper()
	c := dial(t, addr)
	go func() { // the server may stop reading half way
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	b, _ := io.ReadAll(c) // an end by reset is an end too
	return string(b)
}

func TestMalformedHTTPIsRefusedAndTheServerLives(t *testing.T) {
	addr := start(t, newServer())
	post := "POST /v1/take HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
	tests := []struct{ name, text, want string }{
		{"Redis", "*1\r\n$4\r\nPING\r\n", "HTTP/1.1 400 "},
		{"NoVersion", "GET /healthz\r\n\r\n", "HTTP/1.1 400 "},
		{"NoHost", "GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		{"Binary", strings.Repeat("\x00\xff\x16\x03", 1000), "HTTP/1.1 400 "},
		{"LongHeader", "GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1<<20), "HTTP/1.1 431 "},
		{"LongPath", "GET /" + strings.Repeat("x", 1<<20), "HTTP/1.1 431 "},
		{"TwoLengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400 "},
		{"NegativeLength", post + "Content-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
		{"HugeLength", post + "Content-Length: 9223372036854775807\r\n\r\n{}", "HTTP/1.1 413 "},
		{"BadChunk", post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "HTTP/1.1 400 "},
		{"CutShort", post + "Content-Length: 100\r\n\r\n{", "HTTP/1.1 400 "},
		{"LargeChunks", post + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat("{", 0x20000), "HTTP/1.1 413 "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := exchangeRaw(t, addr, test.text); !strings.HasPrefix(got, test.want) {
				t.Errorf("answer is %.80q, want %q first", got, test.want)
			}
			if got := exchangeRaw(t, addr, "GET /healthz HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "ok\n") {
				t.Errorf("afterwards /healthz answers %.80q", got)
			}
		})
	}
}

func TestConnectionsBeyondTheMostAreTurnedAway(t *testing.T) {
	s := newServer(func(o *httpapi.Options) { o.MaxConnections = 1 })
	addr := start(t, s)
	first := dial(t, addr)
	ask := func() {
		t.Helper()
		_, _ = io.WriteString(first, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil || read(t, res) != "ok\n" {
			t.Fatalf("the first connection is not served: %v", err)
		}
	}
	ask()
	second := dial(t, addr)
	_, _ = io.WriteString(second, "GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(second), nil)
	if err != nil {
		t.Fatal(err)
	}
	var problem httpapi.Problem
	if err := json.Unmarshal([]byte(read(t, res)), &problem); err != nil || res.StatusCode != http.StatusServiceUnavailable || problem.Status != http.StatusServiceUnavailable || !res.Close {
		t.Errorf("the second connection got %v %+v, %v; want 503 and an end", res, problem, err)
	}
	if rest, err := io.ReadAll(second); err != nil || len(rest) != 0 {
		t.Errorf("after that: %q, %v", rest, err)
	}
	ask()
	if got := s.Stats(); got.Connections != 1 || got.Accepted != 1 || got.Refused != 1 {
		t.Errorf("stats are %+v, want 1 connection, 1 accepted, 1 refused", got)
	}
}

// With all connections in use the server is up and not ready: a liveness probe passes, all other
// requests get 503, and so do requests without end and with a foreign Host.
func TestHealthWithAllConnectionsInUse(t *testing.T) {
	s := newServer(func(o *httpapi.Options) { o.MaxConnections = 1 })
	addr := start(t, s)
	first := dial(t, addr)
	_, _ = io.WriteString(first, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil || read(t, res) != "ok\n" {
		t.Fatalf("the first connection is not served: %v", err)
	}
	for request, want := range map[string]string{
		"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n":                             "HTTP/1.1 200 ",
		"GET /healthz HTTP/1.0\r\n\r\n":                                        "HTTP/1.1 200 ",
		"GET /healthz HTTP/1.1\r\nHost: other.example\r\n\r\n":                 "HTTP/1.1 503 ",
		"POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n":       "HTTP/1.1 503 ",
		"GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n":                              "HTTP/1.1 503 ",
		"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 8<<10): "HTTP/1.1 503 ",
		"GET /healthz":         "HTTP/1.1 503 ",
		"*1\r\n$4\r\nPING\r\n": "HTTP/1.1 503 ",
	} {
		if got := exchangeRaw(t, addr, request); !strings.HasPrefix(got, want) {
			t.Errorf("%.40q gets %.60q, want %q", request, got, want)
		}
	}
	if got := s.Stats(); got.Connections != 1 || got.Accepted != 1 || got.Refused != 8 {
		t.Errorf("stats are %+v, want 1 connection, 1 accepted, 8 refused", got)
	}
}

// pipe is a listener of one connection, in memory, for tests with their own clock.
type pipe struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipe) Accept() (net.Conn, error) {
	if c, open := <-p.conns; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (*pipe) Addr() net.Addr { return &net.TCPAddr{} }

func TestShutdownDoesNotWaitForConnectionsThatSendNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newServer(), &pipe{conns: make(chan net.Conn)}
		served := make(chan error, 1)
		go func() { served <- s.Serve(p) }()
		silent, far := net.Pipe()
		p.conns <- far
		synctest.Wait()
		began := time.Now()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if took := time.Since(began); took > time.Second { // http.Server would wait for 5 s
			t.Errorf("shutdown took %v", took)
		}
		if got, err := io.ReadAll(silent); err != nil || len(got) != 0 {
			t.Errorf("the connection got %q, %v; want an end", got, err)
		}
		if got := s.Stats().Connections; got != 0 {
			t.Errorf("%d connections are left", got)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	s := newServer()
	addr := start(t, s)
	c := dial(t, addr)
	body := `{"key":"k","limit":"1/1h"}`
	_, _ = io.WriteString(c, "POST /v1/take HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 26\r\n\r\n")
	replies := bufio.NewReader(c)
	if line, err := replies.ReadString('\n'); !strings.Contains(line, "100 Continue") {
		t.Fatalf("got %q, %v; want to be told to continue", line, err)
	}
	_, _ = replies.ReadString('\n')
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	for { // until the listener is closed
		late, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		late.Close()
	}
	_, _ = io.WriteString(c, body)
	res, err := http.ReadResponse(replies, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, res); res.StatusCode != http.StatusOK || !strings.HasPrefix(got, `{"allowed":true`) {
		t.Errorf("request in flight got %d %s", res.StatusCode, got)
	}
	if err := <-done; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
