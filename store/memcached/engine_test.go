package memcached_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
)

const (
	second = int64(time.Second)
	noon   = 1_700_000_000 * second // a time to trust
)

// shared is for tests that bear what others leave behind.
var shared = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Memcached(t) })

func open(t testing.TB, url string, o memcached.Options) *memcached.Store {
	t.Helper()
	s, err := memcached.Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var tests atomic.Int64

// mine returns options with a prefix that nobody else has.
func mine(testing.TB) memcached.Options {
	// the machine may be busy
	return memcached.Options{Prefix: fmt.Sprintf("test-%d", tests.Add(1)), Timeout: 10 * time.Minute}
}

func trusted(t testing.TB) memcached.Options {
	o := mine(t)
	o.TrustClientTime = true
	return o
}

func bind(t testing.TB, s store.Store, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func do(t testing.TB, b store.Binding, key string, op algorithm.Op, now int64) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(context.Background(), key, op, now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func take(t testing.TB, b store.Binding, key string, cost, now int64) algorithm.Verdict {
	t.Helper()
	return do(t, b, key, algorithm.Op{Cost: cost}, now)
}

// ask sends commands over a connection of its own, and returns the lines up to one that begins with last.
func ask(t testing.TB, s *testengine.Server, commands, last string) (lines []string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(commands)); err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(conn); in.Scan(); {
		if strings.HasPrefix(in.Text(), last) {
			return lines
		}
		lines = append(lines, in.Text())
	}
	t.Fatalf("%.50q: no %s after %q", commands, last, lines)
	return nil
}

// recordName is the name of an unnamed limit's record.
func recordName(o memcached.Options, key, limit string) string {
	return o.Prefix + ":1:{" + key + "}::" + strings.ReplaceAll(algorithm.MustParseLimit(limit).Canonical().String(), " ", "+")
}

// ttl returns in how many seconds the server drops an item, by the server's own clock: -1 is never.
// It is false if there is no item of this name.
func ttl(t testing.TB, s *testengine.Server, name string) (seconds int64, found bool) {
	t.Helper()
	// The reply to mn is the last line, whether or not there is an item.
	for _, line := range ask(t, s, "mg "+name+" t\r\nmn\r\n", "MN") {
		switch text, hit := strings.CutPrefix(line, "HD t"); {
		case line == "EN":
		case hit:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n, true
		default:
			t.Fatalf("mg %s t: %q", name, line)
		}
	}
	return 0, false
}

// A span begins at a read of both clocks: the process's, and the server's, by which items expire.
// On a busy machine these differ.
type span struct {
	server *testengine.Server
	uptime int64
	began  time.Time
}

func begin(t testing.TB, s *testengine.Server) span {
	t.Helper()
	return span{server: s, uptime: uptime(t, s), began: time.Now()}
}

// expires fails the test unless an item, last written within the span to expire in some seconds,
// still does.
func (s span) expires(t testing.TB, name string, in int64) {
	t.Helper()
	left, found := ttl(t, s.server, name)
	passed := uptime(t, s.server) - s.uptime + int64(time.Since(s.began)/time.Second) + 1
	// A missing item is no failure if it may have expired.
	if left > in || found && left < in-passed || !found && passed < in {
		t.Errorf("%s expires in %d s (found: %v); want %d, less up to %d that passed", name, left, found, in, passed)
	}
}

// uptime returns the server's clock, in whole seconds. Expirations follow this clock, which lags on
// a busy machine.
func uptime(t testing.TB, s *testengine.Server) int64 {
	t.Helper()
	for _, line := range ask(t, s, "stats\r\n", "END") {
		if text, ok := strings.CutPrefix(line, "STAT uptime "); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
	}
	t.Fatal("stats has no uptime")
	return 0
}

// value returns what the server has under a name.
func value(t testing.TB, s *testengine.Server, name string) string {
	t.Helper()
	lines := ask(t, s, fmt.Sprintf("get %s\r\n", name), "END")
	if len(lines) != 2 {
		return ""
	}
	return lines[1]
}

// forward passes on what comes over a listener's connections.
func forward(from net.Listener, to string) {
	for near, err := from.Accept(); err == nil; near, err = from.Accept() {
		far, err := net.Dial("tcp", to)
		if err != nil {
			near.Close()
			continue
		}
		go func() { _, _ = io.Copy(far, near); far.Close() }()
		go func() { _, _ = io.Copy(near, far); near.Close() }()
	}
}
