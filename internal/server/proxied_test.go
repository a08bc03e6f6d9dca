package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
)

const fromElsewhere = "PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\n"

// say sends text, and returns the first line of the answer and what is wrong with it.
func say(t *testing.T, address, text string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	_, _ = io.WriteString(c, text)
	return bufio.NewReader(c).ReadString('\n')
}

// shownAddress is what the server takes for the client's address, with which the client says before it asks.
func shownAddress(t *testing.T, address, before string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return shownOn(t, c, before)
}

func shownOn(t *testing.T, c net.Conn, before string) string {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	_, _ = io.WriteString(c, before+"CLIENT INFO\r\n")
	r := bufio.NewReader(c)
	_, _ = r.ReadString('\n') // the length of the line
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`addr=(\S*)`).FindStringSubmatch(line)[1]
}

func TestProxiesTellOfTheirClients(t *testing.T) {
	s := start(t, server.Config{ProxyProtocolFrom: []string{"10.0.0.0/8", "::ffff:127.0.0.1/128"}})
	if got := shownAddress(t, s.RESPAddr().String(), fromElsewhere); got != "192.0.2.7:1234" {
		t.Errorf("the client is %s, want that of the header", got)
	}
	if line, err := say(t, s.RESPAddr().String(), "PING\r\n"); line != "" || err == nil {
		t.Errorf("without a header PING is answered %q, %v", line, err)
	}
	const health = "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
	if line, err := say(t, s.HTTPAddr().String(), fromElsewhere+health); line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("with a header HTTP is answered %q, %v", line, err)
	}
	if line, err := say(t, s.HTTPAddr().String(), health); line != "" || err == nil {
		t.Errorf("without a header HTTP is answered %q, %v", line, err)
	}
	metrics := get(t, s, "/metrics") // no proxy is in front of the admin listener
	for _, want := range []string{`weir_proxy_headers_refused_total{protocol="resp"} 1`, `weir_proxy_headers_refused_total{protocol="http"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s in\n%s", want, weirOnly(metrics))
		}
	}
}

// Pitfall H3, in the PROXY protocol's words.
func TestH3HeadersOfNoProxiesAreWhatClientsSend(t *testing.T) {
	for _, from := range [][]string{nil, {"10.0.0.0/8"}} {
		s := start(t, server.Config{ProxyProtocolFrom: from})
		if got := shownAddress(t, s.RESPAddr().String(), ""); !strings.HasPrefix(got, "127.0.0.1:") {
			t.Errorf("proxies from %v: the client is %s, want itself", from, got)
		}
		if line, err := say(t, s.RESPAddr().String(), fromElsewhere); !strings.HasPrefix(line, "-ERR unknown command") {
			t.Errorf("proxies from %v: over RESP a header is answered %q, %v", from, line, err)
		}
		if line, err := say(t, s.HTTPAddr().String(), fromElsewhere); !strings.HasPrefix(line, "HTTP/1.1 400 ") {
			t.Errorf("proxies from %v: over HTTP a header is answered %q, %v", from, line, err)
		}
	}
}

// A connection of a proxy is cut short like any other: its client reads the last replies.
func TestProxiedConnectionsEndWell(t *testing.T) {
	s := start(t, server.Config{ProxyProtocolFrom: []string{"127.0.0.1"}})
	c, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	_, _ = io.WriteString(c, fromElsewhere+strings.Repeat("PING\r\n", 1000)+"QUIT\r\n"+strings.Repeat("PING\r\n", 1000))
	b, err := io.ReadAll(c)
	if want := strings.Repeat("+PONG\r\n", 1000) + "+OK\r\n"; string(b) != want || err != nil {
		t.Errorf("%d bytes came, %v; want %d, and no reset", len(b), err, len(want))
	}
}

// The configurations in the documentation are run as they are, but for their ports.
func TestProxiesAsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, proxy := range []struct {
		program, begins, before string
		args                    func(file string) []string
	}{
		{"nginx", "stream {", nginxPreamble(), func(file string) []string { return []string{"-p", filepath.Dir(file), "-c", file} }},
		{"haproxy", "listen weir", "defaults\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n", func(file string) []string { return []string{"-db", "-f", file} }},
	} {
		t.Run(proxy.program, func(t *testing.T) {
			if _, err := exec.LookPath(proxy.program); err != nil {
				lacking(t, proxy.program)
			}
			text := regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(proxy.begins) + `\n(    .*\n)+`).FindString(string(docs))
			if text == "" {
				t.Fatalf("the documentation has no %q", proxy.begins)
			}
			s := start(t, server.Config{ProxyProtocolFrom: []string{"127.0.0.1"}})
			port := freePort(t)
			text = strings.NewReplacer("listen 6379", "listen 127.0.0.1:"+port, "bind :6379", "bind 127.0.0.1:"+port, "127.0.0.1:6380", s.RESPAddr().String()).Replace(text)
			file := filepath.Join(t.TempDir(), "proxy.conf")
			if err := os.WriteFile(file, []byte(proxy.before+text), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, proxy.program, proxy.args(file)...)
			c := reach(t, "127.0.0.1:"+port)
			defer c.Close()
			if got := shownOn(t, c, ""); got != c.LocalAddr().String() {
				t.Errorf("through %s the client is %s, want %s", proxy.program, got, c.LocalAddr())
			}
			if metrics := get(t, s, "/metrics"); !strings.Contains(metrics, `weir_proxy_headers_refused_total{protocol="resp"} 0`) {
				t.Errorf("headers of %s were refused:\n%s", proxy.program, weirOnly(metrics))
			}
		})
	}
}

// nginxPreamble runs nginx as one process that leaves nothing behind, with the module that Debian has apart.
func nginxPreamble() string {
	text := "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {}\n"
	if module := "/usr/lib/nginx/modules/ngx_stream_module.so"; exists(module) {
		return "load_module " + module + ";\n" + text
	}
	return text
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lacking says that a program is not there: a failure where the environment requires all of them.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("WEIR_ENGINES") == "require" {
		t.Fatalf("missing, and required: %s", what)
	}
	t.Skipf("missing: %s", what)
}

// freePort is a port of 127.0.0.1 that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// run runs a program until the test ends.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd, log := exec.Command(program, args...), new(strings.Builder)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s says: %s", program, log)
		}
	})
}

// reach connects to a server that is starting.
func reach(t *testing.T, address string) net.Conn {
	t.Helper()
	for ; ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			return c
		}
	}
}
