package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/testcert"
)

// TestMain lets a test start this binary as weir itself, as a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_ADMIN") == "" { // the default port could be in use
		_ = os.Setenv("WEIR_ADMIN", "0")
	}
	if os.Getenv("WEIR_TEST_AS_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// serve runs weir serve on free ports until the test ends, and returns what it printed when it was ready.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan int, 1)
	var out, log bytes.Buffer
	p := program{stdout: &out, stderr: &log, serving: func(*server.Server) { close(ready) }}
	go func() { done <- p.run(ctx, append([]string{"serve"}, args...)) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("exit code is %d; log: %s", code, log.String())
		}
	})
	select {
	case <-ready:
	case code := <-done:
		done <- code
		t.Fatalf("weir serve ended with %d: %s", code, log.String())
	}
	return out.String()
}

// shown finds what follows a pattern in the greeting.
func shown(t *testing.T, greeting, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(greeting)
	if m == nil {
		t.Fatalf("no %s in %q", pattern, greeting)
	}
	return m[1]
}

func TestServeAnswersWhereItSays(t *testing.T) {
	greeting := serve(t, "--resp", "0", "--http", "127.0.0.1:0")
	c, err := net.Dial("tcp", shown(t, greeting, `Redis protocol on (\S+)\. `))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "WEIR.TAKE user:42 1/1h\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "*6\r\n" {
		t.Errorf("take over RESP answers %q, %v", line, err)
	}
	url := "http://" + shown(t, greeting, `HTTP on (\S+)\. `) + "/v1/take"
	res, err := http.Post(url, "application/json", strings.NewReader(`{"key":"user:42","limit":"1/1h"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); !strings.HasPrefix(string(body), `{"allowed":false`) {
		t.Errorf("take over HTTP of what was taken over RESP answers %s, %v", body, err)
	}
}

func TestServeOff(t *testing.T) {
	if greeting := serve(t, "--resp", "off", "--http", "0"); strings.Contains(greeting, "Redis") {
		t.Errorf("greeting is %q, want nothing about RESP", greeting)
	}
}

// Who is behind a proxy is who the proxy says.
func TestServeBehindProxies(t *testing.T) {
	greeting := serve(t, "--resp", "0", "--http", "off", "--proxy-protocol-from", "10.0.0.0/8, 127.0.0.1", "--proxy-protocol-from", "fd00::/8")
	if want := "Connections from 10.0.0.0/8, 127.0.0.1, fd00::/8 must begin with a header of the PROXY protocol.\n"; !strings.Contains(greeting, want) {
		t.Errorf("greeting is %q, want %q in it", greeting, want)
	}
	for _, sent := range []string{"PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\nPING\r\n", "PING\r\n"} {
		c, err := net.Dial("tcp", shown(t, greeting, `Redis protocol on (\S+)\. `))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, sent)
		line, _ := bufio.NewReader(c).ReadString('\n')
		if want := strings.HasPrefix(sent, "PROXY"); (line == "+PONG\r\n") != want {
			t.Errorf("%q is answered %q", sent, line)
		}
		c.Close()
	}
}

// The lines to try are run as a user would: pasted into a shell.
func TestLinesToTryWork(t *testing.T) {
	for _, tool := range []string{"redis-cli", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("WEIR_ENGINES") == "require" {
				t.Fatal(err)
			}
			t.Skipf("left out: %v", err)
		}
	}
	socket := filepath.Join(t.TempDir(), "s")
	for _, address := range []string{"127.0.0.1:0", ":0", "unix:" + socket} {
		other := func(suffix string) string { return strings.Replace(address, socket, socket+suffix, 1) }
		greeting := serve(t, "--resp", address, "--http", other("h"), "--admin", other("a"), "--config", exampleConfig, "--insecure")
		lines := regexp.MustCompile(`(?m)^  (.+)$`).FindAllStringSubmatch(greeting, -1)
		if len(lines) != 4 {
			t.Fatalf("%d lines to try in %q, want 4", len(lines), greeting)
		}
		for i, want := range []string{"1\n100\n99\n0\n", `{"allowed":true,"limit":100,"remaining":9`, `{"allowed":true,"limit":5,"remaining":4`, `{"version":"`} {
			out, err := exec.Command("sh", "-c", lines[i][1]).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s answers %q, %v; want %q", lines[i][1], out, err, want)
			}
		}
	}
}

func TestLinesToTryNameTheHost(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": " -p 7",
		"0.0.0.0":   " -p 7",
		"::":        " -p 7",
		"::1":       " -h ::1 -p 7",
		"10.1.2.3":  " -h 10.1.2.3 -p 7",
	} {
		if got := new(serveCommand).cliOptions(&net.TCPAddr{IP: net.ParseIP(host), Port: 7}); got != want {
			t.Errorf("options for %s are %q, want %q", host, got, want)
		}
	}
}

// With TLS and users the lines to try work as they are, once the files and the user have their
// names. The admin listener at loopback has no TLS.
func TestLinesToTryOverTLS(t *testing.T) {
	a := testcert.New(t)
	pair, client, dir := a.Issue(t, "weir"), a.Issue(t, "client"), t.TempDir()
	for name, path := range map[string]string{"ca.pem": a.File, "client.pem": client.Cert, "client.key": client.Key} {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	users := filepath.Join(dir, "users")
	hash, err := access.Hash("SECRET")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, []byte("user USER on "+hash+" +@all ~*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--tls-client-ca", a.File}, {"--users", users}} {
		greeting := serve(t, append([]string{"--resp", "0", "--http", "0", "--admin", "0", "--tls-cert", pair.Cert, "--tls-key", pair.Key}, more...)...)
		lines := regexp.MustCompile(`(?m)^  (.+)$`).FindAllStringSubmatch(greeting, -1)
		if len(lines) != 3 {
			t.Fatalf("%d lines to try in %q, want 3", len(lines), greeting)
		}
		for i, want := range []string{"1\n100\n99\n0\n", `{"allowed":true,"limit":100,"remaining":9`, `{"version":"`} {
			cmd := exec.Command("sh", "-c", lines[i][1])
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s answers %q, %v; want %q", lines[i][1], out, err, want)
			}
		}
	}
}

// startProcess starts weir serve as a process and returns the lines that it prints.
func startProcess(t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--resp", "0", "--http", "0")
	cmd.Env = append(os.Environ(), "WEIR_TEST_AS_PROGRAM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	return cmd, bufio.NewReader(out)
}

func TestSignalsFinishWhatIsInFlightAndExitZero(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd, out := startProcess(t)
		var greeting strings.Builder
		for !strings.Contains(greeting.String(), "Ctrl-C") {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatalf("%v after %q", err, greeting.String())
			}
			greeting.WriteString(line)
		}
		address := shown(t, greeting.String(), `HTTP on (\S+)\. `)
		finish := begin(t, address)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		for { // until it has stopped accepting
			late, err := net.Dial("tcp", address)
			if err != nil {
				break
			}
			late.Close()
		}
		if got := finish(); !strings.HasPrefix(got, `{"allowed":true`) {
			t.Errorf("%v: the request in flight got %q", signal, got)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v, want exit code 0", signal, err)
		}
	}
}

// begin sends the head of a request and waits until it is being served; finish sends the rest and returns the answer.
func begin(t *testing.T, address string) (finish func() string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	const body = `{"key":"k","limit":"1/1h"}`
	_, _ = io.WriteString(c, "POST /v1/take HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: 26\r\n\r\n")
	r := bufio.NewReader(c)
	for line := "-"; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return func() string {
		_, _ = io.WriteString(c, body)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		return string(answer)
	}
}
