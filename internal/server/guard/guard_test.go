package guard_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/internal/server/guard"
)

func from(address string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(address), Port: 7} }

func TestPrefix(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "::1": "::/64",
	} {
		if p, ok := guard.Prefix(from(address)); !ok || p.String() != want {
			t.Errorf("prefix of %s is %v, %v, want %s", address, p, ok, want)
		}
	}
	if p, ok := guard.Prefix(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}); !ok || p.String() != "fe80::/64" {
		t.Errorf("prefix of an address with a zone is %v, %v", p, ok)
	}
	for _, a := range []net.Addr{nil, &net.TCPAddr{}, &net.UnixAddr{Name: "x", Net: "unix"}} {
		if p, ok := guard.Prefix(a); ok {
			t.Errorf("prefix of %v is %v, want none", a, p)
		}
	}
}

// TestBoundsHoldForAnySequence admits connections of few addresses, and lets them leave, in any
// order.
func TestBoundsHoldForAnySequence(t *testing.T) {
	addresses := []string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "127.0.0.1"}
	rapid.Check(t, func(t *rapid.T) {
		most, each := rapid.IntRange(1, 8).Draw(t, "most"), rapid.IntRange(1, 4).Draw(t, "each")
		g := guard.New(guard.Options{Max: most, MaxPerAddress: each})
		type connection struct {
			source *guard.Source
			prefix string
		}
		var open []connection
		for range 50 {
			if len(open) > 0 && rapid.Bool().Draw(t, "leave") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				g.Leave(open[i].source)
				open = append(open[:i], open[i+1:]...)
				continue
			}
			address := rapid.SampledFrom(addresses).Draw(t, "address")
			p, _ := guard.Prefix(from(address))
			of := 0
			for _, c := range open {
				if c.prefix == p.String() {
					of++
				}
			}
			source, why, ok := g.Admit(from(address))
			if want := len(open) < most && of < each; ok != want {
				t.Fatalf("admitted %v, want %v: %d are open, %d of the address", ok, want, len(open), of)
			}
			if !ok && (why == guard.Total) != (len(open) == most) {
				t.Fatalf("refused for %v: %d are open, %d of the address", why, len(open), of)
			}
			if ok {
				open = append(open, connection{source, p.String()})
			}
			if g.Open() != len(open) {
				t.Fatalf("%d are open, want %d", g.Open(), len(open))
			}
		}
	})
}

func TestSourceHoldsAtMost(t *testing.T) {
	g := guard.New(guard.Options{Max: 2})
	a, _, _ := g.Admit(from("192.0.2.1"))
	b, _, _ := g.Admit(from("192.0.2.1"))
	if !a.Hold(60, 100) || b.Hold(41, 100) || !b.Hold(40, 100) || !a.Hold(-60, 100) || !b.Hold(60, 100) {
		t.Error("the bytes of an address are not counted together")
	}
	var none *guard.Source
	if !none.Hold(1<<40, 1) {
		t.Error("a connection without an address has a bound")
	}
}

func TestLogHasOneLineInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := guard.New(guard.Options{Protocol: "resp", Max: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 25 { // seconds
			g.Count(guard.Idle, "192.0.2.1")
			g.Count(guard.Total, "192.0.2.2")
			g.Count(guard.Total, "192.0.2.3")
			time.Sleep(time.Second)
		}
		text := log.String()
		for _, want := range []string{
			`msg="connections are refused" protocol=resp reason=total address=192.0.2.2 count=1`,
			`reason=total address=192.0.2.2 count=20`,
			`msg="connections are cut" protocol=resp reason=idle address=192.0.2.1 count=10`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		if n := strings.Count(text, "\n"); n != 6 {
			t.Errorf("%d lines in 25 seconds, want 3 for each of two reasons:\n%s", n, text)
		}
		if c := g.Counts(); c.Refused() != 50 || c.Cut() != 25 || c[guard.Idle] != 25 {
			t.Errorf("counts are %v", c)
		}
	})
}

func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard.New(guard.Options{Max: 1000})
		var all sync.WaitGroup
		var ends []net.Conn
		for range 100 { // clients without reads
			near, far := net.Pipe()
			all.Add(1)
			ends = append(ends, near)
			g.Refuse(far, guard.Total, func(net.Conn) []byte { return []byte("-ERR no\r\n") }, all.Done)
		}
		synctest.Wait()
		closed := 0
		for _, c := range ends {
			_ = c.SetReadDeadline(time.Now())
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				closed++
			}
		}
		if closed != 36 {
			t.Errorf("%d of 100 refused connections are closed at once, want all but 64", closed)
		}
		all.Wait()
	})
}

func TestPanicsAreLoggedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := guard.NewPanics(slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 {
			p.Safe("a task", func() { panic(errors.New("a defect")) })()
		}
		p.Safe("a calm task", func() {})()
		if c := p.Counts(); len(c) != 1 || c["a task"] != 3 {
			t.Errorf("counts are %v", c)
		}
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "a defect") || !strings.Contains(text, "guard_test.go") {
			t.Errorf("log is %s", text)
		}
	})
}
