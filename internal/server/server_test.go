package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store/memory"
)

// start runs a server on free ports until the test ends.
func start(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	if cfg.RESP == "" {
		cfg.RESP = "0"
	}
	if cfg.HTTP == "" {
		cfg.HTTP = "0"
	}
	if cfg.Admin == "" {
		cfg.Admin = "0"
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// redis sends an inline command and returns the lines of the answer, as many as there should be.
func redis(t *testing.T, s *server.Server, command string, lines int) string {
	t.Helper()
	c, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, command+"\r\n")
	r := bufio.NewReader(c)
	var b strings.Builder
	for range lines {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v after %q", command, err, b.String())
		}
		b.WriteString(strings.TrimRight(line, "\r\n") + " ")
	}
	return b.String()
}

// address is where a path is served in full: what an operator reads is on the admin listener.
func address(s *server.Server, path string) string {
	switch path {
	case "/metrics", "/v1/status", "/v1/explain", "/readyz":
		return s.AdminAddr().String()
	}
	return s.HTTPAddr().String()
}

func post(t *testing.T, s *server.Server, path, body string) string {
	t.Helper()
	res, err := http.Post("http://"+address(s, path)+path, "application/json", strings.NewReader(body))
	return read(t, res, err)
}

func get(t *testing.T, s *server.Server, path string) string {
	t.Helper()
	res, err := http.Get("http://" + address(s, path) + path)
	return read(t, res, err)
}

func read(t *testing.T, res *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProtocolsShareState(t *testing.T) {
	s := start(t, server.Config{})
	if got := redis(t, s, `WEIR.TAKE user:42 "3/1h" COST 2`, 3); got != "*6 :1 :3 " {
		t.Errorf("take over RESP: %q", got)
	}
	body := `{"key":"user:42","limit":"3/1h"}`
	if got := post(t, s, "/v1/take", body); !strings.HasPrefix(got, `{"allowed":true,"limit":3,"remaining":0,`) {
		t.Errorf("take of the last unit over HTTP: %s", got)
	}
	if got := post(t, s, "/v1/take", body); !strings.HasPrefix(got, `{"allowed":false,"limit":3,"remaining":0,`) {
		t.Errorf("take of one more over HTTP: %s", got)
	}
	if got := redis(t, s, `WEIR.TAKE user:42 "token-bucket 3/60m"`, 4); got != "*6 :0 :3 :0 " {
		t.Errorf("take of one more over RESP, the limit spelled otherwise: %q", got)
	}
	post(t, s, "/v1/reset", body)
	if got := redis(t, s, `WEIR.PEEK user:42 3/1h`, 4); got != "*6 :1 :3 :3 " {
		t.Errorf("peek over RESP after a reset over HTTP: %q", got)
	}
}

// The names of --http-host are in a Config, and the machine's own name needs no flag.
func TestHosts(t *testing.T) {
	s := start(t, server.Config{HTTPHosts: []string{"weir.example.com"}})
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"weir.example.com": 200, own: 200, "other.example.com": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.AdminAddr().String()+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		if text := read(t, res, err); res.StatusCode != want {
			t.Errorf("under the Host %s: %d %s, want %d", host, res.StatusCode, text, want)
		}
	}
}

func TestMetricsCountWhatBothProtocolsDid(t *testing.T) {
	s := start(t, server.Config{Version: "v1.2.3", MaxKeys: 2})
	redis(t, s, "WEIR.TAKE a 1/1h", 7)
	redis(t, s, "WEIR.TAKE a 1/1h", 7)
	for _, key := range []string{"b", "b", "b", "c"} {
		post(t, s, "/v1/take", fmt.Sprintf(`{"key":%q,"limit":"1/1h"}`, key))
	}
	post(t, s, "/v1/take", `{}`)
	redis(t, s, "WEIR.TAKE", 1)
	got := get(t, s, "/metrics")
	for _, want := range []string{
		`weir_decisions_total{protocol="resp",verdict="allowed"} 1`,
		`weir_decisions_total{protocol="resp",verdict="denied"} 1`,
		`weir_decisions_total{protocol="http",verdict="allowed"} 1`,
		`weir_decisions_total{protocol="http",verdict="denied"} 3`,
		`weir_errors_total{protocol="http"} 1`,
		`weir_errors_total{protocol="resp"} 1`,
		`weir_connections_accepted_total{protocol="resp"} 3`,
		`weir_keys 2`,
		`weir_overflowed_total 1`,
		`weir_growth_refused_total 0`,
		`weir_memory_max_bytes 1.073741824e+09`,
		`version="v1.2.3"`,
		`go_goroutines `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("/metrics has no %s in\n%s", want, weirOnly(got))
		}
	}
}

func weirOnly(metrics string) string {
	var b strings.Builder
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "weir_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestOverflowShareGivesNewKeysOneBudget(t *testing.T) {
	s := start(t, server.Config{RESP: server.Off, MaxKeys: 1, Overflow: memory.Share})
	allowed := 0
	for _, key := range []string{"a", "b", "c"} {
		if strings.HasPrefix(post(t, s, "/v1/take", fmt.Sprintf(`{"key":%q,"limit":"1/1h"}`, key)), `{"allowed":true`) {
			allowed++
		}
	}
	if allowed != 2 { // one for the key that is held, one for all others
		t.Errorf("%d of 3 new keys were allowed, want 2", allowed)
	}
}

func TestClientTimeIsTrustedOnBothOrNeither(t *testing.T) {
	for _, trust := range []bool{false, true} {
		s := start(t, server.Config{TrustClientTime: trust})
		overHTTP := strings.HasPrefix(post(t, s, "/v1/take", `{"key":"k","limit":"1/1s","at_us":1735689600000000}`), `{"allowed":true`)
		overRESP := strings.HasPrefix(redis(t, s, "WEIR.TAKE l 1/1s AT 1735689600000000", 1), "*6")
		if overHTTP != trust || overRESP != trust {
			t.Errorf("with TrustClientTime %v HTTP accepts a time: %v, RESP: %v", trust, overHTTP, overRESP)
		}
	}
}

func TestOneProtocolOff(t *testing.T) {
	s := start(t, server.Config{HTTP: server.Off})
	if s.HTTPAddr() != nil || s.RESPAddr() == nil {
		t.Errorf("addresses are %v and %v, want only that of RESP", s.RESPAddr(), s.HTTPAddr())
	}
	if got := redis(t, s, "PING", 1); got != "+PONG " {
		t.Errorf("PING: %q", got)
	}
}

func TestRunBeforeOpen(t *testing.T) {
	s, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err == nil {
		t.Error("Run before Open returned nil")
	}
}

func TestRunStopsWhenAProtocolFails(t *testing.T) {
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // takes the listeners away
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err == nil {
		t.Error("Run without listeners returned nil")
	}
}

func TestGraceTimeEnds(t *testing.T) {
	s, err := server.New(server.Config{RESP: server.Off, HTTP: "0", Admin: "0", Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c, err := net.Dial("tcp", s.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := "POST /v1/take HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"
	_, _ = io.WriteString(c, head)
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // told to continue: the request is in flight
		t.Fatal(err)
	}
	cancel() // the rest of the body never comes
	if err := <-done; err != nil {
		t.Errorf("Run returned %v, want nil: it was asked to stop, and did", err)
	}
}
