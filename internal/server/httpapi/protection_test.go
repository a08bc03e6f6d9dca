package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// pipes is a listener with connections in memory, from addresses of the test's choice.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
}

type end struct {
	net.Conn
	from net.Addr
}

func (e end) RemoteAddr() net.Addr { return e.from }

func newPipes() pipes { return pipes{make(chan net.Conn), make(chan struct{})} }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(address string) net.Conn {
	near, far := net.Pipe()
	p.waiting <- end{far, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
	return near
}

func TestSlowAndIdleConnectionsAreCutAndCounted(t *testing.T) {
	const get = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, test := range map[string]struct {
		before, each string
		read         bool
		want         guard.Counts
	}{
		"nothing":                {"", "", true, guard.Counts{guard.Idle: 1}},
		"a byte a second":        {"", "x", true, guard.Counts{guard.Unfinished: 1}},
		"half a request":         {"GET / HTTP/1.1\r\n", "", true, guard.Counts{guard.Unfinished: 1}},
		"a request, then half":   {get, "GET", true, guard.Counts{guard.Unfinished: 1}},
		"a request":              {get, "", true, guard.Counts{guard.Idle: 1}},
		"a request that ends":    {strings.Replace(get, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1), "", true, guard.Counts{}},
		"nobody reads":           {get, "", false, guard.Counts{guard.Unread: 1}},
		"half a body":            {"POST /v1/take HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n{", "", true, guard.Counts{guard.Unfinished: 1}},
		"a request, each second": {get, get, true, guard.Counts{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, p := newServer(func(o *httpapi.Options) { o.IdleTimeout = 20 * time.Second }), newPipes()
			done := make(chan error, 1)
			go func() { done <- s.Serve(p) }()
			c := p.dial("192.0.2.1")
			if test.read {
				go func() { _, _ = io.Copy(io.Discard, c) }()
			}
			send := make(chan string)
			go func() {
				for text := range send {
					_, _ = io.WriteString(c, text)
				}
			}()
			send <- test.before
			for range 45 {
				time.Sleep(time.Second)
				if test.each != "" {
					send <- test.each
				}
			}
			close(send)
			synctest.Wait()
			if got := s.Stats(); got.Reasons != test.want {
				t.Errorf("%s: %+v, want %+v", name, got.Reasons, test.want)
			}
			_ = c.Close()
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newServer(func(o *httpapi.Options) { o.MaxPerAddress = 1 }), newPipes()
		done := make(chan error, 1)
		go func() { done <- s.Serve(p) }()
		first, second, other := p.dial("192.0.2.1"), p.dial("192.0.2.1"), p.dial("192.0.2.2")
		for c, want := range map[net.Conn]int{first: http.StatusOK, second: http.StatusServiceUnavailable, other: http.StatusOK} {
			go func() { _, _ = io.WriteString(c, "GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n") }()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || res.StatusCode != want {
				t.Errorf("a connection got %+v, %v, want %d", res, err, want)
			}
		}
		if got := s.Stats(); got.Connections != 2 || got.Refused != 1 || got.Reasons[guard.Address] != 1 {
			t.Errorf("stats: %+v", got)
		}
		for _, c := range []net.Conn{first, second, other} {
			_ = c.Close()
		}
		synctest.Wait()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-done
	})
}

// panicStore panics for one limit.
type panicStore struct{ store.Store }

func (s panicStore) Bind(spec store.Spec) (store.Binding, error) {
	if spec.Limit.Count == 6 {
		panic("the store is broken")
	}
	return s.Store.Bind(spec)
}

func TestPanicEndsItsConnectionOnly(t *testing.T) {
	var log bytes.Buffer
	panics := guard.NewPanics(slog.New(slog.NewTextHandler(&log, nil)))
	s := newServer(func(o *httpapi.Options) {
		o.Limiters, o.Panics = limiters.New(panicStore{memory.New(memory.Options{})}), panics
	})
	addr := start(t, s)
	post := func(limit string) (*http.Response, error) {
		return http.Post("http://"+addr+"/v1/take", "application/json", strings.NewReader(`{"key":"k","limit":"`+limit+`"}`))
	}
	if _, err := post("6/6s"); err == nil {
		t.Errorf("a request whose handler panics gets a response")
	}
	if res, err := post("5/5s"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the next request gets %v, %v", res, err)
	} else {
		res.Body.Close()
	}
	if got := s.Stats(); got.Reasons[guard.Panic] != 1 || panics.Counts()["http: request"] != 1 {
		t.Errorf("stats: %+v, panics: %v", got, panics.Counts())
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "the store is broken") || !strings.Contains(text, "panicStore") {
		t.Errorf("log: %s", text)
	}
}
