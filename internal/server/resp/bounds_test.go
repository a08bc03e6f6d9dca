package resp_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

func TestProtocolErrorIsSaidAndEndsTheConnection(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}, MaxCommand: 2000})
	for input, want := range map[string]string{
		"*1\r\n$4\r\nPING\r\n*1\r\n+PING\r\n" + strings.Repeat("x", 100_000): "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n",
		"*1025\r\n":               "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$2000\r\n":         "-ERR Protocol error: invalid bulk length: a command may have 2000 bytes\r\n",
		strings.Repeat("x", 2000): "-ERR Protocol error: too big inline request\r\n",
		`PING "` + "\r\n":         "-ERR Protocol error: unbalanced quotes in request, or too many words\r\n",
		"\xff\xfe\x00\r\n":        "-ERR unknown command \"\\xff\\xfe\", with args beginning with:\r\n",
	} {
		c := dial(t, address)
		c.send(input)
		if strings.Contains(want, "Protocol") {
			if got := c.expectClosed(); got != want {
				t.Errorf("%.40q\n got %q\nwant %q", input, got, want)
			}
		} else if got := "-" + c.reply() + "\r\n"; got != want {
			t.Errorf("%.40q\n got %q\nwant %q", input, got, want)
		}
	}
}

func TestLargestCommandIsCarriedOut(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	for _, size := range []int{10, 4096, 16 << 10, 40_000, 1<<20 - 100, 20, 1<<20 - 100} {
		text := strings.Repeat("x", size)
		c.send(array("ECHO", text) + array("PING"))
		if c.reply() != text || c.reply() != "PONG" {
			t.Fatalf("ECHO of %d bytes: another reply", size)
		}
	}
	c.send(array("ECHO", strings.Repeat("x", 1<<20)))
	if got := c.expectClosed(); !strings.HasPrefix(got, "-ERR Protocol error: invalid bulk length") {
		t.Errorf("ECHO of a megabyte: %.80q", got)
	}
}

func TestConnectionsBeyondTheMostAreTold(t *testing.T) {
	server, address := start(t, resp.Options{Service: &operation.Service{}, MaxConnections: 2})
	first, second := dial(t, address), dial(t, address)
	first.do("PING")
	second.do("PING")
	if got := dial(t, address).expectClosed(); got != "-ERR max number of clients reached\r\n" {
		t.Errorf("third client: %q", got)
	}
	if s := server.Stats(); s.Connections != 2 || s.Accepted != 2 || s.Refused != 1 {
		t.Errorf("stats: %+v", s)
	}
	first.do("QUIT")
	first.expectClosed()
	eventually(t, "a connection is forgotten", func() bool { return server.Stats().Connections < 2 })
	if got := dial(t, address).do("PING"); got != "PONG" {
		t.Errorf("a client in place of the first: %q", got)
	}
}

// pipes is a listener whose connections are in memory, without any room between the two ends.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
}

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

func (p pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.waiting <- far
	return near
}

func serveOnPipes(t *testing.T, o resp.Options) (*resp.Server, pipes) {
	o.Limiters = limiters.New(memory.New(memory.Options{}))
	server, p := resp.New(o), newPipes()
	go func() {
		if err := server.Serve(p); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	return server, p
}

func TestClientThatDoesNotReadIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{}, WriteTimeout: 10 * time.Second})
		deaf, quiet := p.dial(), p.dial()
		if _, err := io.WriteString(deaf, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if s := server.Stats(); s.Cut != 0 || s.Connections != 2 {
			t.Errorf("after 9s: %+v", s)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if s := server.Stats(); s.Cut != 1 || s.Connections != 1 {
			t.Errorf("after 15s: %+v, want the client that does not read cut, and the quiet one kept", s)
		}
		_ = quiet.Close()
		_ = deaf.Close()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestIdleClientIsCutByOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{}, IdleTimeout: time.Minute})
		idle, busy := p.dial(), p.dial()
		for range 20 {
			if _, err := io.WriteString(busy, "PING\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(busy, make([]byte, len("+PONG\r\n"))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if s := server.Stats(); s.Cut != 1 || s.Connections != 1 {
			t.Errorf("after 100s: %+v, want the idle client cut", s)
		}
		_ = idle.Close()
		_ = busy.Close()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestRepliesAreWrittenBeforeTheyAreMany(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	const n = 500
	go func() { _, _ = io.WriteString(c, strings.Repeat("COMMAND DOCS\r\n", n)) }()
	first := c.reply()
	for i := range n - 1 {
		if c.reply() != first {
			t.Fatalf("reply %d differs from the first", i+2)
		}
	}
}
