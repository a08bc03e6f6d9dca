package memcached_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
	"github.com/weirlimit/weir/store/storetest/engine"
)

const (
	second = int64(time.Second)
	noon   = 1_700_000_000 * second // a time to trust
)

// shared is for tests that bear what others leave behind.
var shared = engine.Shared(func(t testing.TB) *engine.Server { return engine.Memcached(t) })

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
	return memcached.Options{Prefix: fmt.Sprintf("test-%d", tests.Add(1)), Timeout: 20 * time.Second} // the machine may be busy
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
func ask(t testing.TB, s *engine.Server, commands, last string) (lines []string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
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

// An item is what a census finds.
type item struct {
	name string
	life time.Duration // of now on; negative if it has no end
}

// census returns the items of a prefix, as the server's own list has them.
func census(t testing.TB, s *engine.Server, prefix string) (items []item) {
	t.Helper()
	for _, line := range ask(t, s, "lru_crawler metadump all\r\n", "END") {
		fields := map[string]string{}
		for _, f := range strings.Fields(line) {
			name, value, _ := strings.Cut(f, "=")
			fields[name] = value
		}
		name, err := url.QueryUnescape(fields["key"])
		if err != nil {
			t.Fatal(line, err)
		}
		if !strings.HasPrefix(name, prefix+":") {
			continue
		}
		ends, err := strconv.ParseInt(fields["exp"], 10, 64)
		if err != nil {
			t.Fatal(line, err)
		}
		i := item{name: name, life: -1}
		if ends > 0 {
			i.life = time.Until(time.Unix(ends, 0))
		}
		items = append(items, i)
	}
	return items
}

// value returns what the server has under a name.
func value(t testing.TB, s *engine.Server, name string) string {
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
