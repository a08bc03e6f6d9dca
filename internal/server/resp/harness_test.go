package resp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// patience ends a hanging test, whose connection shows the place.
const patience = 10 * time.Minute

// stoppedClock is a store whose own clock stands where the test put it.
type stoppedClock struct {
	store.Store
	now *atomic.Int64
}

type stoppedBinding struct {
	store.Binding
	now *atomic.Int64
}

func newStoppedClock() stoppedClock {
	s := stoppedClock{Store: memory.New(memory.Options{}), now: new(atomic.Int64)}
	s.now.Store(time.Now().Truncate(time.Hour).UnixNano())
	return s
}

func (s stoppedClock) advance(d time.Duration) { s.now.Add(int64(d)) }

func (s stoppedClock) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return stoppedBinding{b, s.now}, err
}

func (b stoppedBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if now == store.OwnClock {
		now = b.now.Load()
	}
	return b.Binding.Do(ctx, key, op, now)
}

// start serves on a free port until the test ends. Options without limiters get some over a store in memory.
func start(t testing.TB, o resp.Options) (server *resp.Server, address string) {
	t.Helper()
	if o.Limiters == nil {
		o.Limiters = limiters.New(memory.New(memory.Options{}))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server = resp.New(o)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return server, l.Addr().String()
}

// A client speaks the protocol as bytes.
type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, nc, bufio.NewReader(nc)}
}

func (c *client) send(input string) {
	c.t.Helper()
	if _, err := io.WriteString(c, input); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one reply and returns it in short: "[1 5 4 0 12 0]", "OK", "ERR ...", "nil".
func (c *client) reply() string {
	c.t.Helper()
	reply, err := c.read()
	if err != nil {
		c.t.Fatalf("reading a reply: %v", err)
	}
	return reply
}

func (c *client) read() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+', '-', ':', '#':
		return text, nil
	case '_':
		return "nil", nil
	case '$', '=':
		return c.readBulk(text)
	case '*', '~':
		return c.readList(text, 1, "[", "]")
	case '%':
		return c.readList(text, 2, "{", "}")
	}
	return "", errors.New("unknown reply " + line)
}

func (c *client) readBulk(length string) (string, error) {
	if length == "-1" {
		return "nil", nil
	}
	text := make([]byte, atoi(length)+2)
	_, err := io.ReadFull(c.in, text)
	return string(text[:len(text)-2]), err
}

func (c *client) readList(length string, each int, open, end string) (string, error) {
	if length == "-1" {
		return "nil", nil
	}
	var parts []string
	for range each * atoi(length) {
		part, err := c.read()
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return open + strings.Join(parts, " ") + end, nil
}

func atoi(digits string) (n int) {
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// do sends a command as a line and returns the reply in short.
func (c *client) do(line string) string {
	c.t.Helper()
	c.send(line + "\r\n")
	return c.reply()
}

// expect runs commands and compares their replies.
func (c *client) expect(lines ...[2]string) {
	c.t.Helper()
	for _, l := range lines {
		if got := c.do(l[0]); got != l[1] {
			c.t.Errorf("%s\n got %s\nwant %s", l[0], got, l[1])
		}
	}
}

// expectClosed reads to the end and returns what came before it.
func (c *client) expectClosed() string {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if err != nil {
		c.t.Fatalf("the connection was not closed in order: %v, after %.80q", err, rest)
	}
	return string(rest)
}

func newLogger(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

// eventually returns when a condition holds. Only the test binary has a deadline.
func eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	t.Logf("waiting until %s", what)
	for !happened() {
		runtime.Gosched()
	}
}
