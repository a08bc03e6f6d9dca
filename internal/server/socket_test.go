//go:build unix

package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlimit/weir/internal/server"
)

// sockets is a configuration with two Unix sockets.
func sockets(t *testing.T) (cfg server.Config, resp, http string) {
	t.Helper()
	dir := t.TempDir()
	resp, http = filepath.Join(dir, "r"), filepath.Join(dir, "h")
	return server.Config{RESP: "unix:" + resp, HTTP: "unix:" + http + "?mode=0666", Admin: "0"}, resp, http
}

// Both protocols are served at Unix sockets, to the programs that people use.
func TestUnixSockets(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077)) // the mode does not depend on it
	cfg, resp, http := sockets(t)
	cfg.MaxConnectionsPerAddress = 1
	var gone [2]bool
	t.Cleanup(func() {
		for i, path := range []string{resp, http} {
			_, err := os.Lstat(path)
			gone[i] = errors.Is(err, os.ErrNotExist)
		}
		if gone != [2]bool{true, true} {
			t.Errorf("after the end of the server the sockets are gone: %v", gone)
		}
	})
	s := start(t, cfg)
	for range 3 { // the bound per address is not for sockets
		c, err := net.Dial("unix", resp)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := shownOn(t, c, ""); got != resp {
			t.Errorf("a client of a socket is shown as %q", got)
		}
	}
	if got := program(t, "redis-cli", "-s", resp, "WEIR.TAKE", "k", "5/1h"); !strings.HasPrefix(got, "1\n5\n4\n") {
		t.Errorf("redis-cli -s prints %q", got)
	}
	if got := program(t, "curl", "-sS", "--unix-socket", http, "-d", `{"key":"k","limit":"5/1h"}`, "http://localhost/v1/take"); !strings.HasPrefix(got, `{"allowed":true,"limit":5,"remaining":3`) {
		t.Errorf("curl --unix-socket prints %q", got)
	}
	for path, want := range map[string]os.FileMode{resp: 0o600, http: 0o666} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("the mode of %s is %v, %v", path, info.Mode(), err)
		}
	}
	if s.RESPAddr().Network() != "unix" || s.RESPAddr().String() != resp {
		t.Errorf("the address is %v", s.RESPAddr())
	}
}

// opened opens a server and closes it again.
func opened(t *testing.T, cfg server.Config) error {
	t.Helper()
	s, err := server.New(cfg)
	if err == nil {
		err = s.Open(context.Background())
	}
	if err == nil {
		err = s.Close()
	}
	return err
}

// The socket of a process that has ended is replaced. Everything else stays.
func TestUnixSocketsOfOthers(t *testing.T) {
	cfg, resp, _ := sockets(t)
	stale := func() {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: resp})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	stale()
	if err := opened(t, cfg); err != nil {
		t.Errorf("a socket of a process that has ended: %v", err)
	}
	if err := os.WriteFile(resp, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		err := opened(t, cfg)
		config, ok := errors.AsType[*server.ConfigError](err)
		if !ok || config.Field != "resp" || !strings.Contains(config.Problem, want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if _, err := os.Lstat(resp); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	refused("not a socket")
	if err := os.Remove(resp); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), resp); err != nil {
		t.Fatal(err)
	}
	refused("not a socket")
	if err := os.Remove(resp); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	refused("another program listens there")
	if got := program(t, "redis-cli", "-s", resp, "PING"); got != "PONG\n" {
		t.Errorf("the socket of %v is answered %q", s.RESPAddr(), got)
	}
	if err := os.Remove(resp); err != nil { // another program takes the path: it keeps it
		t.Fatal(err)
	}
	l, err := net.Listen("unix", resp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Run("the first server ends", func(t *testing.T) { // before the cleanups of t
		other := server.Config{RESP: "unix:" + resp + "2", HTTP: server.Off, Admin: server.Off}
		start(t, other)
		if err := os.Rename(resp, resp+"2"); err != nil {
			t.Fatal(err)
		}
	})
	if c, err := net.Dial("unix", resp+"2"); err != nil {
		t.Errorf("a server removed the socket of another program: %v", err)
	} else {
		c.Close()
	}
}

// Addresses that are no sockets are refused.
func TestUnixAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"unix:":                              "absolute",
		"unix:relative":                      "absolute",
		"unix:@abstract":                     "absolute",
		"unix:/" + strings.Repeat("x", 200):  "up to 103 bytes",
		"unix:/x?mode=0060":                  "0600 to",
		"unix:/x?mode=9":                     "0600 to",
		"unix:/x?mode=10777":                 "0600 to",
		"unix:/x?user=me":                    "0600 to",
		"unix:/nowhere/there/is/such/a/file": "no such file",
	} {
		err := opened(t, server.Config{RESP: text, HTTP: server.Off, Admin: server.Off})
		if config, ok := errors.AsType[*server.ConfigError](err); !ok || config.Field != "resp" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if err := opened(t, server.Config{RESP: "unix:/tmp/x", HTTP: "unix:/tmp/../tmp/x?mode=0666", Admin: server.Off}); err == nil || !strings.Contains(err.Error(), "resp is served there") {
		t.Errorf("both protocols at one socket: error %v", err)
	}
}

// A proxy at a Unix socket sends a header, if it is said to.
func TestProxiesAtUnixSockets(t *testing.T) {
	cfg, resp, _ := sockets(t)
	cfg.ProxyProtocolFrom = []string{"unix"}
	start(t, cfg)
	dial := func() net.Conn {
		c, err := net.Dial("unix", resp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	if got := shownOn(t, dial(), fromElsewhere); got != "192.0.2.7:1234" {
		t.Errorf("the client is %s, want that of the header", got)
	}
	c := dial()
	_, _ = io.WriteString(c, "PING\r\n")
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("without a header PING is answered %q, %v", b, err)
	}
}
