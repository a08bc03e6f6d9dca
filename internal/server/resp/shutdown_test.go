package resp_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// gate is a store whose operations wait until it opens, or end with an error.
type gate struct {
	store.Store
	entered chan struct{}
	open    chan struct{}
	err     error
}

type gatedBinding struct {
	store.Binding
	gate gate
}

func (g gate) Bind(spec store.Spec) (store.Binding, error) {
	b, err := g.Store.Bind(spec)
	return gatedBinding{b, g}, err
}

func (b gatedBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if b.gate.err != nil {
		return algorithm.Verdict{}, b.gate.err
	}
	b.gate.entered <- struct{}{}
	select {
	case <-b.gate.open:
		return b.Binding.Do(ctx, key, op, now)
	case <-ctx.Done():
		return algorithm.Verdict{}, ctx.Err()
	}
}

func newGate() gate {
	return gate{Store: memory.New(memory.Options{}), entered: make(chan struct{}, 10), open: make(chan struct{})}
}

func TestShutdownFinishesWhatHasArrived(t *testing.T) {
	g := newGate()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(g)}})
	served, down := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	busy, idle := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	idle.do("PING")
	busy.send("WEIR.TAKE k 1/1h\r\nPING\r\nWEIR.TAK")
	<-g.entered
	go func() { down <- server.Shutdown(context.Background()) }()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := idle.expectClosed(); got != "" {
		t.Errorf("the idle client was told %q", got)
	}
	if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
		nc.Close()
		t.Error("the server still accepts")
	}
	close(g.open)
	if got := busy.expectClosed(); !strings.HasPrefix(got, "*6\r\n:1\r\n") || !strings.HasSuffix(got, "+PONG\r\n") {
		t.Errorf("the busy client was told %q", got)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := server.Serve(l); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, p := newGate(), newPipes()
		server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(g)}})
		go func() { _ = server.Serve(p) }()
		c := p.dial()
		if _, err := c.Write([]byte("WEIR.TAKE k 1/1h\r\n")); err != nil {
			t.Fatal(err)
		}
		<-g.entered
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v, want the context's error", err)
		}
		synctest.Wait()
		if s := server.Stats(); s.Connections != 0 {
			t.Errorf("after Shutdown: %+v", s)
		}
	})
}

func TestFailureOfTheStoreIsNotToldToClients(t *testing.T) {
	began := time.Now()
	g := newGate()
	g.err = errors.New("dial tcp 10.0.0.7:6379: secret")
	var log strings.Builder
	server, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(g), Log: newLogger(&log)}})
	c := dial(t, address)
	want := "ERR no decision could be made, try again"
	c.expect([][2]string{
		{"WEIR.TAKE k 1/1h", want}, {"WEIR.PEEK k 1/1h", want}, {"WEIR.REFUND k 1/1h", want}, {"WEIR.RESET k 1/1h", want},
		{"CL.THROTTLE k 1 1 1", want}, {"THROTTLE k 1 1 1", want}, {"RL.REDUCE k 1 1", want}, {"RL.GET k 1 1", want},
	}...)
	c.send(strings.Repeat("WEIR.TAKE k 1/1h\r\n", 3) + "PING\r\n")
	for range 3 {
		if got := c.reply(); got != want {
			t.Errorf("in a pipeline: %s", got)
		}
	}
	if got := c.reply(); got != "PONG" {
		t.Errorf("after failures: %s", got)
	}
	c.do("QUIT")
	c.expectClosed()
	if s := server.Stats(); s.Errors != 11 || s.Allowed+s.Denied != 0 {
		t.Errorf("stats: %+v", s)
	}
	if n := strings.Count(log.String(), "10.0.0.7"); n < 1 || n > 1+int(time.Since(began)/time.Second) {
		t.Errorf("the log tells the reason %d times, want at most once a second:\n%s", n, &log)
	}
}
