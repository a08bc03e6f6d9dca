package handshake_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/handshake"
	"github.com/weirlimit/weir/internal/testcert"
	"github.com/weirlimit/weir/internal/testpipe"
)

var (
	client   = testpipe.TCP("192.0.2.1:1")
	stranger = testpipe.TCP("192.0.2.2:1")
)

// A server is a listener for tests.
type server struct {
	net.Listener
	// accepted has its connections.
	accepted chan net.Conn

	pipes  *testpipe.Listener
	guard  *guard.Guard
	config *tls.Config // of clients
	log    *bytes.Buffer
}

// issue returns an authority and a certificate, outside of a bubble's clock.
func issue(t *testing.T) (*testcert.Authority, tls.Certificate) {
	a := testcert.New(t)
	return a, a.Issue(t, "weir.internal").Load(t)
}

// listen returns a server with a certificate of an authority.
func listen(t *testing.T, a *testcert.Authority, pair tls.Certificate) *server {
	t.Helper()
	s := &server{pipes: testpipe.New(), log: new(bytes.Buffer), accepted: make(chan net.Conn, 10)}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.guard = guard.New(guard.Options{Protocol: "resp", Max: handshake.MaxAtOnce, MaxPerAddress: handshake.MaxPerAddress, Log: log})
	now := func() time.Time { return pair.Leaf.NotBefore.Add(1000 * time.Hour) } // whatever the clock of the bubble
	s.config = &tls.Config{RootCAs: a.Pool(), ServerName: "weir.internal", Time: now}
	s.Listener = handshake.Listen(s.pipes, handshake.Options{
		Config: func() *tls.Config {
			// no tickets, which a pipe's client would have to read
			return &tls.Config{Certificates: []tls.Certificate{pair}, Time: now, SessionTicketsDisabled: true}
		},
		Guard: s.guard, Plain: []byte("-ERR TLS required\r\n"), Panics: guard.NewPanics(log),
	})
	t.Cleanup(func() { _ = s.Close() })
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
		}
	}()
	return s
}

// Clients that send nothing, or a byte each second, delay nobody, and are closed after the timeout.
func TestSlowHandshakes(t *testing.T) {
	a, pair := issue(t)
	synctest.Test(t, func(t *testing.T) {
		s, start := listen(t, a, pair), time.Now()
		_, silent := s.pipes.Dial(stranger)
		trickle, trickled := s.pipes.Dial(stranger)
		go func() {
			for _, b := range []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") {
				if _, err := trickle.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		raw, _ := s.pipes.Dial(client)
		c := tls.Client(raw, s.config)
		go func() { _, _ = io.WriteString(c, "hello") }()
		got := <-s.accepted
		if waited := time.Since(start); waited != 0 || got.RemoteAddr() != net.Addr(client) {
			t.Errorf("accepted %v after %v", got.RemoteAddr(), waited)
		}
		if state := got.(*handshake.Conn).ConnectionState(); !state.HandshakeComplete {
			t.Error("its handshake is not over")
		}
		<-silent.Closed
		<-trickled.Closed
		if waited := time.Since(start); waited != handshake.Timeout {
			t.Errorf("slow clients are closed after %v", waited)
		}
		time.Sleep(time.Hour) // its deadline was the handshake's
		b := make([]byte, 5)
		if _, err := io.ReadFull(got, b); string(b) != "hello" {
			t.Errorf("read %q, %v", b, err)
		}
		synctest.Wait()
		if n := s.guard.Counts()[guard.Handshake]; n != 2 {
			t.Errorf("%d handshakes failed, want 2", n)
		}
		if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "reason=handshake") || !strings.Contains(log, "i/o timeout") {
			t.Errorf("the log is %s", log)
		}
	})
}

// A flood of slow clients is bounded, and gives way to a client that is not slow.
func TestFloodOfSlowHandshakes(t *testing.T) {
	a, pair := issue(t)
	synctest.Test(t, func(t *testing.T) {
		s := listen(t, a, pair)
		for i := range handshake.MaxAtOnce {
			s.pipes.Dial(&net.TCPAddr{IP: net.IPv4(198, 51, 100, byte(i%10)), Port: i})
		}
		_, excess := s.pipes.Dial(stranger)
		<-excess.Closed
		time.Sleep(time.Second)
		raw, _ := s.pipes.Dial(client)
		c := tls.Client(raw, s.config)
		go func() { _ = c.Handshake() }()
		if got := (<-s.accepted).RemoteAddr(); got != net.Addr(client) {
			t.Errorf("accepted %v", got)
		}
		for range handshake.MaxPerAddress + 1 { // the oldest give way, as one did above
			_, excess = s.pipes.Dial(stranger)
		}
		<-excess.Closed // a fresh address has its bound
		synctest.Wait()
		if counts := s.guard.Counts(); counts[guard.Handshakes] != 2 || counts[guard.Handshake] != handshake.MaxPerAddress+1 {
			t.Errorf("%d refused, %d cut", counts[guard.Handshakes], counts[guard.Handshake])
		}
	})
}

// A check whether the port is open is no failure. Clients without TLS get a reply.
func TestOtherClients(t *testing.T) {
	a, pair := issue(t)
	synctest.Test(t, func(t *testing.T) {
		s := listen(t, a, pair)
		raw, end := s.pipes.Dial(client)
		_ = raw.Close()
		<-end.Closed
		plain, _ := s.pipes.Dial(client)
		go func() { _, _ = io.WriteString(plain, "PING\r\n") }()
		if b, _ := io.ReadAll(plain); string(b) != "-ERR TLS required\r\n" {
			t.Errorf("without TLS the reply is %q", b)
		}
		synctest.Wait()
		if counts := s.guard.Counts(); counts[guard.Plain] != 1 || counts.Cut() != 1 || counts.Refused() != 0 {
			t.Errorf("counts are %v", counts)
		}
	})
}

// A client that does not read does not hold up a shutdown.
func TestCloseDoesNotWait(t *testing.T) {
	a, pair := issue(t)
	synctest.Test(t, func(t *testing.T) {
		s := listen(t, a, pair)
		for _, end := range []func(*handshake.Conn) error{(*handshake.Conn).Close, (*handshake.Conn).CloseWrite} {
			raw, _ := s.pipes.Dial(client)
			c := tls.Client(raw, s.config)
			go func() { _ = c.Handshake() }()
			conn := (<-s.accepted).(*handshake.Conn)
			synctest.Wait()
			start := time.Now()
			_ = end(conn)
			if took := time.Since(start); took > 100*time.Millisecond {
				t.Errorf("the end took %v", took)
			}
			_ = conn.Close()
		}
	})
}
