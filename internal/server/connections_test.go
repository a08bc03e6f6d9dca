package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// panicStore panics at every decision.
type panicStore struct{ store.Store }

type panicBinding struct{ store.Binding }

func (s panicStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return panicBinding{b}, err
}

func (panicBinding) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	panic("the store is broken")
}

func TestPanicsAndRefusalsAreCounted(t *testing.T) {
	var log bytes.Buffer
	s := start(t, server.Config{
		Opened: panicStore{memory.New(memory.Options{})}, MaxConnections: 20, MaxConnectionsPerAddress: 1, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	ask := func(text string) string {
		c, err := net.Dial("tcp", s.RESPAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, text)
		b, _ := io.ReadAll(c)
		return string(b)
	}
	if got := ask("WEIR.TAKE k 5/1h\r\n"); got != "" {
		t.Errorf("a command whose store panics gets %q, want the end of its connection", got)
	}
	first, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if got := exchange(t, first, "PING\r\n"); got != "+PONG\r\n" {
		t.Errorf("after the panic: %q", got)
	}
	if got := ask("PING\r\n"); got != "-ERR max number of clients of one address reached\r\n" {
		t.Errorf("a second connection of the address gets %q", got)
	}
	metrics := get(t, s, "/metrics")
	for _, want := range []string{
		`weir_connections_cut_total{protocol="resp",reason="panic"} 1`,
		`weir_connections_refused_total{protocol="resp",reason="address"} 1`,
		`weir_connections_refused_total{protocol="http",reason="total"} 0`,
		`weir_connections_cut_total{protocol="resp",reason="unfinished"} 0`,
		`weir_panics_total{task="resp: connection"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics have no %s:\n%s", want, weirOnly(metrics))
		}
	}
}

func exchange(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	_, _ = io.WriteString(c, text)
	b := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
