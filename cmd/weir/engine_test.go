package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
)

// patience is a timeout beyond the reach of tests on a busy machine.
const patience = 10 * time.Minute

// A daemon is weir serve as a process of its own.
type daemon struct {
	cmd        *exec.Cmd
	resp, http string // addresses
	admin      string
	log        *safeBuffer
}

// safeBuffer is written by one goroutine and read by another.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startDaemon starts weir serve over a store, which it is told in its environment, and waits until it listens.
func startDaemon(t *testing.T, store string, args ...string) *daemon {
	t.Helper()
	return beginDaemon(t, exec.Command(os.Args[0], append([]string{"serve", "--resp", "0", "--http", "0"}, args...)...), store)
}

// beginDaemon starts the command of a daemon, and waits until it listens.
func beginDaemon(t *testing.T, cmd *exec.Cmd, store string) *daemon {
	t.Helper()
	d := &daemon{cmd: cmd, log: &safeBuffer{}}
	d.cmd.Env = append(os.Environ(), "WEIR_TEST_AS_PROGRAM=1", "WEIR_STORE="+store)
	d.cmd.Stderr = d.log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.end(t) })
	var greeting strings.Builder
	for lines := bufio.NewScanner(out); !strings.Contains(greeting.String(), "Ctrl-C"); {
		if !lines.Scan() {
			t.Fatalf("weir serve over %s ended: %s", store, d.log)
		}
		greeting.WriteString(lines.Text() + "\n")
	}
	d.resp = shown(t, greeting.String(), `Redis protocol on (\S+)\. `)
	d.http = shown(t, greeting.String(), `HTTP on (\S+)\. `)
	d.admin = shown(t, greeting.String(), `Metrics, status and health on (\S+)\. `)
	if scheme, _, _ := strings.Cut(store, ":"); !strings.Contains(greeting.String(), "State in "+scheme) {
		t.Errorf("the greeting does not say where the state is: %s", greeting.String())
	}
	return d
}

// end stops the process, if it still runs.
func (d *daemon) end(t *testing.T) {
	if err := d.cmd.Process.Signal(os.Interrupt); errors.Is(err, os.ErrProcessDone) {
		return
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("weir serve: %v: %s", err, d.log)
	}
}

// ask sends commands in one write and returns their replies in short, such as "[1 3 2 0 7 0]".
func (d *daemon) ask(t *testing.T, commands ...string) []string {
	t.Helper()
	c, err := net.Dial("tcp", d.resp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, strings.Join(commands, "\r\n")+"\r\n")
	in := bufio.NewReader(c)
	replies := make([]string, len(commands))
	for i := range commands {
		if replies[i], err = readReply(in); err != nil {
			t.Fatalf("%s: %v", commands[i], err)
		}
	}
	return replies
}

func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil || len(line) < 3 {
		return "", fmt.Errorf("reply %q: %w", line, err)
	}
	text := line[1 : len(line)-2]
	n := 0
	if line[0] == '*' || line[0] == '$' {
		if _, err := fmt.Sscan(text, &n); err != nil {
			return "", err
		}
	}
	switch line[0] {
	case '*':
		parts := make([]string, n)
		for i := range parts {
			if parts[i], err = readReply(in); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, " ") + "]", nil
	case '$':
		bulk := make([]byte, n+2)
		_, err := io.ReadFull(in, bulk)
		return string(bulk[:n]), err
	}
	return text, nil
}

// post asks over HTTP and returns the status and the body.
func (d *daemon) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience}
	var res *http.Response
	var err error
	address := d.http
	switch path {
	case "/metrics", "/v1/status", "/v1/explain", "/readyz":
		address = d.admin
	}
	if body == "" {
		res, err = client.Get("http://" + address + path)
	} else {
		res, err = client.Post("http://"+address+path, "application/json", strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A backend is an engine that a test may kill and start again.
type backend struct {
	url         string
	kill, start func(t *testing.T)
}

func ofEngine(s *testengine.Server) backend {
	return backend{s.URL(), func(t *testing.T) { s.Kill(t) }, func(t *testing.T) { s.Start(t) }}
}

// backends start each kind of engine.
var backends = map[string]func(t *testing.T) backend{
	"redis":     func(t *testing.T) backend { return ofEngine(testengine.Redis(t)) },
	"postgres":  func(t *testing.T) backend { return ofEngine(testengine.Postgres(t)) },
	"memcached": func(t *testing.T) backend { return ofEngine(testengine.Memcached(t)) },
	"weir": func(t *testing.T) backend {
		d := startDaemon(t, "memory", "--trust-client-time")
		return backend{
			url:  "weir://" + d.resp,
			kill: func(t *testing.T) { d.end(t) },
			start: func(t *testing.T) {
				again := startDaemon(t, "memory", "--trust-client-time", "--resp", d.resp)
				*d = *again
			},
		}
	},
}

// withTimeout gives a URL a generous timeout, as the kind of engine spells it.
func withTimeout(kind, url string) string {
	name := "timeout"
	if kind == "postgres" {
		name = "weir_timeout"
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + name + "=" + patience.String()
}
