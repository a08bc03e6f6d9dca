package testengine_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
)

// connect returns a proxy to a new memcached, and a used connection through the proxy.
func connect(t *testing.T) (*testengine.Server, *testengine.Proxy, *net.TCPConn) {
	t.Helper()
	server := testengine.Memcached(t)
	p := testengine.NewProxy(t, server)
	conn := dial(t, p.Addr())
	exchange(t, conn, "mn\r\n", "MN\r\n")
	return server, p, conn
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v; want %q", got, err, want)
	}
}

func exchange(t *testing.T, conn net.Conn, text, want string) {
	t.Helper()
	send(t, conn, text)
	receive(t, conn, want)
}

// wantReset reads until the connection ends, and wants RST.
func wantReset(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}

// wantRefusal connects, and wants RST.
func wantRefusal(t *testing.T, p *testengine.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}

func TestProxyDelays(t *testing.T) {
	_, p, conn := connect(t)
	const delay = 30 * time.Millisecond
	p.Set(testengine.Fault{Requests: testengine.Flow{Delay: delay}, Replies: testengine.Flow{Delay: 2 * delay}})
	began := time.Now()
	exchange(t, conn, "mn\r\n", "MN\r\n")
	if took := time.Since(began); took < 3*delay {
		t.Errorf("the reply came after %v, want %v or more", took, 3*delay)
	}
	p.Set(testengine.Fault{Replies: testengine.Flow{Delay: time.Hour}})
	send(t, conn, "mn\r\n")
	p.Heal()
	receive(t, conn, "MN\r\n")
}

func TestProxyThrottles(t *testing.T) {
	_, p, conn := connect(t)
	p.Set(testengine.Fault{Requests: testengine.Flow{Rate: 100_000}})
	began := time.Now()
	text := "set key 0 0 8000\r\n" + strings.Repeat("x", 8000) + "\r\n"
	exchange(t, conn, text, "STORED\r\n")
	if took, least := time.Since(began), 80*time.Millisecond; took < least {
		t.Errorf("8000 bytes took %v, want %v or more", took, least)
	}
}

// Held bytes arrive when the fault ends, in their order.
func TestProxyHolds(t *testing.T) {
	server, p, conn := connect(t)
	p.Set(testengine.Fault{Requests: testengine.Flow{Hold: true}})
	for i := range 100 {
		send(t, conn, fmt.Sprintf("set key 0 0 2 noreply\r\n%02d\r\n", i))
	}
	exchange(t, dial(t, server.Addr()), "get key\r\n", "END\r\n")
	p.Heal()
	exchange(t, conn, "get key\r\n", "VALUE key 0 2\r\n99\r\nEND\r\n")
}

// Dropped bytes never arrive.
func TestProxyDrops(t *testing.T) {
	server, p, conn := connect(t)
	p.Set(testengine.Fault{Requests: testengine.Flow{Drop: true}})
	send(t, conn, "set key 0 0 1\r\nx\r\n")
	conn.CloseWrite()
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v; want the end of the stream", n, err)
	}
	exchange(t, dial(t, server.Addr()), "get key\r\n", "END\r\n")
}

// A connection without its dropped bytes is reset when the fault ends. All others stay.
func TestProxyResetsWhatLostBytes(t *testing.T) {
	_, p, conn := connect(t)
	other := dial(t, p.Addr())
	exchange(t, other, "mn\r\n", "MN\r\n")
	err := error(nil)
	for pause := time.Millisecond; err == nil; pause *= 2 { // until the reply arrives before the fault ends
		p.Set(testengine.Fault{Replies: testengine.Flow{Drop: true}})
		send(t, conn, "mn\r\n")
		time.Sleep(pause)
		p.Heal()
		_, err = conn.Read(make([]byte, 4))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
	exchange(t, other, "mn\r\n", "MN\r\n")
}

func TestProxyCuts(t *testing.T) {
	_, p, conn := connect(t)
	p.Cut()
	wantReset(t, conn)
	exchange(t, dial(t, p.Addr()), "mn\r\n", "MN\r\n")
	p.Set(testengine.Fault{Refuse: true})
	wantRefusal(t, p)
	p.Heal()
	exchange(t, dial(t, p.Addr()), "mn\r\n", "MN\r\n")
}

// wantStored polls until the server has a key. Only the test binary has a deadline.
func wantStored(t *testing.T, server *testengine.Server) {
	t.Helper()
	direct := bufio.NewReader(nil)
	for reply := ""; reply != "HD\r\n"; {
		conn := dial(t, server.Addr())
		send(t, conn, "mg key\r\n")
		direct.Reset(conn)
		var err error
		if reply, err = direct.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestProxyClosesHalf(t *testing.T) {
	server, p, conn := connect(t)
	p.CloseReplies()
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v; want the end of the stream", n, err)
	}
	send(t, conn, "set key 0 0 1\r\nx\r\n")
	conn.CloseWrite() // the engine has read all before this end
	wantStored(t, server)
	other := dial(t, p.Addr())
	exchange(t, other, "mn\r\n", "MN\r\n")
	p.CloseRequests()
	if n, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // memcached ends the connection
		t.Errorf("%d bytes, %v; want the end of the stream", n, err)
	}
}

// The end of an engine ends the connections. New connections are reset until the engine is back.
func TestProxyToAnEngineThatIsAway(t *testing.T) {
	server, p, conn := connect(t)
	server.Kill(t)
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes from an engine that was killed", n)
	}
	wantRefusal(t, p)
	server.Start(t)
	exchange(t, dial(t, p.Addr()), "mn\r\n", "MN\r\n")
}
