package resp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

// An end is the server's end of a pipe, from an address.
type end struct {
	net.Conn
	from net.Addr
}

func (e end) RemoteAddr() net.Addr { return e.from }

// dialFrom connects from an address.
func (p pipes) dialFrom(address string) net.Conn {
	near, far := net.Pipe()
	p.waiting <- end{far, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
	return near
}

// closed reports whether the server has closed the connection, without waiting.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now())
	_, err := c.Read(make([]byte, 1))
	_ = c.SetReadDeadline(time.Time{})
	return errors.Is(err, io.EOF)
}

// endAll closes the connections and the server.
func endAll(t *testing.T, server *resp.Server, all ...net.Conn) {
	t.Helper()
	for _, c := range all {
		_ = c.Close()
	}
	if err := server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestUnfinishedCommandsAreCut(t *testing.T) {
	long := "*2\r\n$4\r\nECHO\r\n$1000000\r\n"
	heavy := "MULTI\r\n" + strings.Repeat("PING "+strings.Repeat("x", 3000)+"\r\n", 7)
	for name, test := range map[string]struct {
		before, each string // each second
		cut          bool
	}{
		"a byte a second":                     {"", "x", true},
		"a long command, a byte a second":     {long, "x", true},
		"a command that stops":                {long, "", true},
		"nothing":                             {"", "", false},
		"a command in two parts, each second": {"PING", "\r\nPING", false},
		"a long transaction":                  {heavy, "", true},
		"a long transaction that goes on":     {heavy, "PING\r\n", true},
		"a short transaction":                 {"MULTI\r\nPING\r\n", "", false},
		"a long transaction that ended":       {heavy + "EXEC\r\n", "", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{}, CommandTimeout: 10 * time.Second})
			c := p.dial()
			go func() { _, _ = io.Copy(io.Discard, c) }()
			_, _ = io.WriteString(c, test.before)
			for second := range 15 {
				if second == 10 && server.Stats().Cut != 0 {
					t.Errorf("%s: cut before 10s", name)
				}
				_, _ = io.WriteString(c, test.each)
				time.Sleep(time.Second)
			}
			synctest.Wait()
			s := server.Stats()
			want := int64(0)
			if test.cut {
				want = 1
			}
			if s.Reasons[guard.Unfinished] != want || s.Cut != want || s.Connections != 1-want {
				t.Errorf("%s: after 15s %+v, want %d cut as unfinished", name, s, want)
			}
			endAll(t, server, c)
		})
	}
}

// TestUnfinishedCommandsLeaveRoom has an address that fills its part of the memory for long
// commands.
func TestUnfinishedCommandsLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{}, MaxBuffered: 16 << 20})
		var all []net.Conn
		for range 248 {
			c := p.dialFrom("192.0.2.1")
			all = append(all, c)
			go func() { _, _ = io.Copy(io.Discard, c) }()
			go func() { _, _ = io.WriteString(c, "*2\r\n$4\r\nECHO\r\n$1000000\r\n"+strings.Repeat("x", 900_000)) }()
		}
		synctest.Wait()
		honest := p.dialFrom("192.0.2.2")
		text := strings.Repeat("x", 1_000_000)
		go func() { _, _ = fmt.Fprintf(honest, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(text), text) }()
		reply := make([]byte, len("$1000000\r\n")+len(text)+2)
		if _, err := io.ReadFull(honest, reply); err != nil || !strings.HasPrefix(string(reply), "$1000000\r\nxxx") {
			t.Errorf("a long command from another address is answered %.80q, %v", reply, err)
		}
		endAll(t, server, append(all, honest)...)
	})
}

func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(safeText)
		server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{Log: newLogger(log)}, MaxConnections: 8, MaxPerAddress: 2})
		var all []net.Conn
		for _, test := range []struct{ address, refusal string }{
			{"192.0.2.1", ""},
			{"::ffff:192.0.2.1", ""},
			{"192.0.2.1", "-ERR max number of clients of one address reached\r\n"},
			{"192.0.2.1", "-ERR max number of clients of one address reached\r\n"},
			{"192.0.2.2", ""},
			{"2001:db8::1", ""},
			{"2001:db8::2:1", ""},
			// a /64 is one address
			{"2001:db8::3", "-ERR max number of clients of one address reached\r\n"},
			{"2001:db8:0:1::1", ""},
			{"127.0.0.1", ""},
			{"127.0.0.1", ""},
			{"127.0.0.1", "-ERR max number of clients reached\r\n"},
		} {
			c := p.dialFrom(test.address)
			all = append(all, c)
			if test.refusal != "" {
				if got, err := io.ReadAll(c); string(got) != test.refusal || err != nil {
					t.Errorf("one more from %s gets %q, %v, want %q", test.address, got, err, test.refusal)
				}
			}
			synctest.Wait()
			if closed(c) != (test.refusal != "") {
				t.Errorf("one more from %s: closed %v", test.address, test.refusal == "")
			}
		}
		if s := server.Stats(); s.Connections != 8 || s.Reasons[guard.Address] != 3 || s.Reasons[guard.Total] != 1 || s.Refused != 4 {
			t.Errorf("stats: %+v", s)
		}
		if n := strings.Count(log.String(), "connections are refused"); n != 2 {
			t.Errorf("%d lines in the log, want one for each reason: %s", n, log.String())
		}
		_ = all[0].Close()
		synctest.Wait()
		again := p.dialFrom("192.0.2.1")
		if synctest.Wait(); closed(again) {
			t.Error("there is no room for an address when one of its connections has left")
		}
		endAll(t, server, append(all, again)...)
	})
}

func TestHTTPIsCounted(t *testing.T) {
	log := new(safeText)
	server, address := start(t, resp.Options{Service: &operation.Service{Log: newLogger(log)}})
	for range 3 {
		c := dial(t, address)
		c.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		c.expectClosed()
	}
	if s := server.Stats(); s.Reasons[guard.HTTP] != 3 || s.Cut != 3 {
		t.Errorf("stats: %+v", s)
	}
	if got := log.String(); !strings.Contains(got, "reason=http") {
		t.Errorf("log: %s", got)
	}
}

// TestClientThatWaitsForTheStoreIsNotIdle has a store slower than a client may be
// idle.
func TestClientThatWaitsForTheStoreIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := slowStore{memory.New(memory.Options{})}
		server, p := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(slow)}, IdleTimeout: time.Second, CommandTimeout: time.Second, WriteTimeout: time.Second}), newPipes()
		go func() { _ = server.Serve(p) }()
		c := p.dial()
		var reading sync.WaitGroup
		reading.Go(func() {
			if got, err := io.ReadAll(c); len(got) == 0 || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
		_, _ = io.WriteString(c, "WEIR.TAKE k 1/1h\r\nPI")
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if s := server.Stats(); s.Cut != 0 {
			t.Errorf("while the store decides: %+v", s)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if s := server.Stats(); s.Reasons[guard.Unfinished] != 1 {
			t.Errorf("after that: %+v", s)
		}
		reading.Wait()
		endAll(t, server, c)
	})
}
