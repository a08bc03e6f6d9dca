//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startWithFiles starts weir serve in memory with a bound on its open files.
func startWithFiles(t *testing.T, files int, args ...string) *daemon {
	t.Helper()
	command := append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), os.Args[0], "serve", "--resp", "0", "--http", "0"}, args...)
	return beginDaemon(t, exec.Command("sh", command...), "memory")
}

// sockets are connections without requests, until the test ends.
type sockets struct {
	mu  sync.Mutex
	all []net.Conn
}

// hold opens connections.
func (s *sockets) hold(t *testing.T, address string, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		s.all = append(s.all, c)
		s.mu.Unlock()
	}
}

func (s *sockets) close() {
	for _, c := range s.all {
		c.Close()
	}
}

// mostSockets is how many sockets a test can hold at each of two addresses, up to 5,000.
func mostSockets(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(5000, (limit.Cur-100)/2))
}

// get sends a request to a listener on a connection of its own, and returns the status and the body.
// It tries again while the end of its previous connections is not noticed.
func (d *daemon) get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		res, err := client.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(text), "too many connections from one address") {
			return res.StatusCode, string(text)
		}
	}
}

// healthy checks the admin listener.
func (d *daemon) healthy(t *testing.T, ready string) (metrics string) {
	t.Helper()
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": ready} {
		if status, body := d.get(t, d.admin, path); status != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", path, status, body, want)
		}
	}
	status, metrics := d.get(t, d.admin, "/metrics")
	if status != 200 {
		t.Errorf("/metrics: %d %s", status, metrics)
	}
	return metrics
}

// counter returns the value of a metric with its labels.
func counter(metrics, name string) int {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(metrics)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return int(n)
}

// 10,000 sockets, many times the open files of the server, take no file from the admin listener. Each
// of these clients may have all connections of its protocol.
func TestHealthWhileClientsHoldAllSockets(t *testing.T) {
	n := mostSockets(t)
	d := startWithFiles(t, 256, "--max-connections-per-address", "10000")
	var held sockets
	defer held.close()
	var all sync.WaitGroup
	for _, address := range []string{d.resp, d.http} {
		all.Go(func() { held.hold(t, address, n) })
	}
	for range 20 { // during the flood
		d.healthy(t, "ok\n")
	}
	all.Wait()
	for { // until the refusals have ended
		metrics := d.healthy(t, "ok\n")
		resp := counter(metrics, `weir_connections{protocol="resp"}`) + counter(metrics, `weir_connections_refused_total{protocol="resp",reason="total"}`)
		http := counter(metrics, `weir_connections{protocol="http"}`) + counter(metrics, `weir_connections_refused_total{protocol="http",reason="total"}`)
		if resp >= n && http+counter(metrics, `weir_connections_cut_total{protocol="http",reason="idle"}`) >= n {
			if lost := counter(metrics, `weir_accept_failures_total{protocol="admin"}`); lost != 0 {
				t.Errorf("the admin listener had no file %d times", lost)
			}
			break
		}
	}
	for status := 0; status != 200; { // 0: refused without a reply, while many refusals are under way
		var body string
		if status, body = d.get(t, d.http, "/healthz"); status != 200 && status != 0 {
			t.Fatalf("/healthz of the data port: %d %s", status, body)
		}
	}
	held.close()
	for { // until the server has noticed
		c, err := net.Dial("tcp", d.resp)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("PING\r\n"))
		reply := make([]byte, 7)
		_, err = c.Read(reply)
		c.Close()
		if err == nil && string(reply) == "+PONG\r\n" {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

// With too few files for anything, accept loops go on, and the admin listener has its spare files.
// Connections of proxies wait for their header without a bound that fits so few files.
func TestHealthWithoutFiles(t *testing.T) {
	for name, args := range map[string][]string{"Clients": nil, "Proxies": {"--proxy-protocol-from", "127.0.0.1"}} {
		t.Run(name, func(t *testing.T) {
			d := startWithFiles(t, 24, append(args, "--max-connections-per-address", "10000")...)
			var held sockets
			defer held.close()
			for i := 0; counter(d.healthy(t, "ok\n"), `weir_accept_failures_total{protocol="resp"}`) < 2; i++ {
				if held.hold(t, d.resp, 20); t.Failed() || i > 100 {
					t.Fatalf("the accept loop had files for %d sockets: %s", len(held.all), d.log)
				}
			}
			for range 50 {
				d.healthy(t, "ok\n")
			}
			if log := d.log.String(); !strings.Contains(log, "can't be accepted") {
				t.Errorf("the lack of files is not logged: %s", log)
			}
			held.close()
			for reply := ""; name == "Clients" && reply != "PONG"; {
				time.Sleep(time.Millisecond)
				reply = d.ask(t, "PING")[0]
			}
		})
	}
}

// A store without room denies, and the admin listener names the reason.
func TestHealthWithAFullStore(t *testing.T) {
	d := startDaemon(t, "memory", "--memory", "1MiB")
	commands := make([]string, 20_000)
	for i := range commands {
		commands[i] = fmt.Sprintf("WEIR.TAKE key:%d 5/1h", i)
	}
	d.ask(t, commands...)
	const ready = "ok\nwarning: the store has no room for more keys\n"
	for {
		if _, body := d.get(t, d.admin, "/readyz"); body == ready {
			break
		}
		d.ask(t, commands...)
	}
	if metrics := d.healthy(t, ready); counter(metrics, "weir_overflowed_total") == 0 {
		t.Error("the metrics do not count the denials")
	}
	if status, body := d.get(t, d.http, "/readyz"); status != 200 || body != "ok\n" {
		t.Errorf("/readyz of the data port: %d %q", status, body)
	}
}
