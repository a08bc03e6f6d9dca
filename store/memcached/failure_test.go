package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
	"github.com/weirlimit/weir/store/swap"
)

// started returns a server that the test may break.
func started(t testing.TB, args ...string) *testengine.Server {
	t.Helper()
	return testengine.Memcached(t, args...)
}

func TestServerThatEnds(t *testing.T) {
	server := started(t)
	s := open(t, server.URL(), memcached.Options{})
	b := bind(t, s, "10/1h")
	var wg sync.WaitGroup
	for i := range 20 { // so that there are idle connections
		wg.Go(func() { take(t, b, fmt.Sprint(i), 4, store.OwnClock) })
	}
	wg.Wait()
	server.Kill(t)
	for range 5 {
		_, err := b.Do(t.Context(), "0", algorithm.Op{Cost: 1}, store.OwnClock)
		if err == nil || !errors.Is(err, swap.ErrNothingDone) || !strings.Contains(err.Error(), server.Addr()) {
			t.Error(err)
		}
	}
	if c := s.Counts(); c.Failures != 3 || c.Disconnections != 3 || c.Refused != 2 || c.Opened < 1 {
		t.Errorf("%+v was counted, want 3 failures and 2 refusals", c)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check says that all is well")
	}
	server.Start(t)
	serves(t, s)
	for i := range 20 { // without what was used: memcached keeps nothing
		if v := take(t, b, fmt.Sprint(i), 1, store.OwnClock); v.Remaining != 9 {
			t.Errorf("after the restart: %+v", v)
		}
	}
}

// A restart that nobody saw: all idle connections are dead, and no caller notices.
func TestRestartBetweenDecisions(t *testing.T) {
	server := started(t)
	b := bind(t, open(t, server.URL(), memcached.Options{}), "10/1h")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { take(t, b, fmt.Sprint(i), 4, store.OwnClock) })
	}
	wg.Wait()
	server.Restart(t)
	for i := range 20 {
		take(t, b, fmt.Sprint(i), 1, store.OwnClock)
	}
}

// A hanging server blocks callers until the timeout, or until their context ends, and no key of a
// different server.
func TestServerThatHangs(t *testing.T) {
	const connections, enough = 4, 8
	hanging, other := started(t), started(t)
	o := mine(t)
	o.Connections = connections
	url := "memcached://" + hanging.Addr() + "," + other.Addr()
	o.Timeout = time.Hour
	b := bind(t, open(t, url, o), "1000/1h")
	o.Timeout = 100 * time.Millisecond
	hasty := bind(t, open(t, url, o), "1000/1h")
	var stuck, free []string
	for i := 0; len(stuck) < enough || len(free) < enough; i++ {
		key := fmt.Sprint(i)
		take(t, b, key, 1, store.OwnClock)
		if _, found := ttl(t, hanging, recordName(o, key, "1000/1h")); found {
			stuck = append(stuck, key)
		} else {
			free = append(free, key)
		}
	}
	hanging.Pause(t)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var wg sync.WaitGroup
	for _, key := range stuck {
		wg.Go(func() {
			if _, err := b.Do(ctx, key, algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that of a caller that gave up", err)
			}
		})
	}
	_, err := hasty.Do(t.Context(), stuck[0], algorithm.Op{Cost: 1}, store.OwnClock)
	if err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("error %v, want a timeout", err)
	}
	for _, key := range free {
		take(t, b, key, 1, store.OwnClock)
	}
	giveUp()
	wg.Wait()
	hanging.Resume(t)
	take(t, b, stuck[0], 1, store.OwnClock)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	ended := started(t)
	ended.Kill(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	for url, want := range map[string]string{
		ended.URL(): ended.Addr() + ": asking for its settings",
		"memcached://" + listener.Addr().String(): "is no memcached",
		started(t, "-C").URL():                    "knows no compare-and-swap; accepted: a server that was started without -C",
		"memcached:///nowhere/memcached.sock":     "/nowhere/memcached.sock",
	} {
		s, err := memcached.Open(t.Context(), url, memcached.Options{Timeout: patience})
		if err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
}

// A memcached that was told to refuse rather than to evict (-M) makes errors of what it can't keep: a new key, and a change, for which
// it needs room beside the old state. It forgets nothing, and says what it has.
func TestFullServerWithoutEvictions(t *testing.T) {
	server := started(t, "-M", "-m", "2")
	b := bind(t, open(t, server.URL(), memcached.Options{Prefix: "full", Timeout: patience}), "10/1000h")
	take(t, b, "some", 4, store.OwnClock)
	take(t, b, "all", 10, store.OwnClock)
	var fill strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&fill, "set full:1:{user:%d}::10/1000h 0 0 16 noreply\r\n1700000000000000\r\n", i)
	}
	fill.WriteString("version\r\n")
	ask(t, server, fill.String(), "VERSION")
	for _, key := range []string{"new", "some"} {
		_, err := b.Do(t.Context(), key, algorithm.Op{Cost: 1}, store.OwnClock)
		if !errors.Is(err, store.ErrNothingDone) || !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("%s: error %v, want ErrNothingDone and that the memory is full", key, err)
		}
	}
	if v := take(t, b, "all", 1, store.OwnClock); v.Granted != -1 {
		t.Errorf("%+v: want a denial", v)
	}
	if v := take(t, b, "some", 0, store.OwnClock); v.Remaining != 6 {
		t.Errorf("%+v: what was there before is lost", v)
	}
}

// What is under the name of a state and is none is an error, and stays.
func TestForeignValue(t *testing.T) {
	server := started(t)
	b := bind(t, open(t, server.URL(), memcached.Options{Timeout: patience}), "10/1h")
	ask(t, server, "set weir:1:{k}::10/1h 0 0 5\r\nhello\r\nversion\r\n", "VERSION")
	_, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	if err == nil || !errors.Is(err, swap.ErrNothingDone) || !strings.Contains(err.Error(), `"hello"`) {
		t.Errorf("error %v", err)
	}
	if got := value(t, server, "weir:1:{k}::10/1h"); got != "hello" {
		t.Errorf("now there is %q", got)
	}
}

func TestUnixSocket(t *testing.T) {
	dir := t.TempDir()
	server := started(t) // it skips the test where there is no memcached
	proxy, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	go forward(proxy, server.Addr())
	b := bind(t, open(t, "memcached://"+dir+"/s?prefix=sock", memcached.Options{Timeout: patience}), "10/1h")
	if v := take(t, b, "k", 3, store.OwnClock); v.Remaining != 7 {
		t.Errorf("%+v", v)
	}
}

// serves waits until no circuit is open.
func serves(t testing.TB, s store.Guarded) {
	t.Helper()
	for s.Breaker().State().Position != store.Closed {
		time.Sleep(time.Millisecond)
		if t.Context().Err() != nil {
			t.Fatal("a circuit stays open")
		}
	}
}
