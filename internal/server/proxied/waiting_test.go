package proxied_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/proxied"
	"github.com/weirlimit/weir/internal/testpipe"
)

var (
	proxy    = tcp("10.1.2.3:99")
	stranger = tcp("192.0.2.1:99")
	ten      = proxied.Options{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
)

const hello = "PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\nhello"

// accept returns the next connection.
func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestSlowHeadersDelayNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, start := testpipe.New(), time.Now()
		l := proxied.Listen(inner, ten)
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				c.Close()
			}
		}()
		_, silent := inner.Dial(proxy)
		trickle, trickled := inner.Dial(proxy)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for {
				if _, err := trickle.Write([]byte("P")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		inner.Dial(stranger) // for who accepts above
		quick, _ := inner.Dial(proxy)
		go func() { _, _ = io.WriteString(quick, hello) }()
		if got := accept(t, l).RemoteAddr().String(); got != "192.0.2.7:1234" {
			t.Errorf("accepted %s, want who sent a header", got)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("accepted after %v, want at once", waited)
		}
		<-silent.Closed
		<-trickled.Closed
		if waited := time.Since(start); waited != proxied.DefaultTimeout {
			t.Errorf("those without a header are closed after %v, want %v", waited, proxied.DefaultTimeout)
		}
		<-gone
		if n := l.Refused(); n != 2 {
			t.Errorf("%d were refused, want 2", n)
		}
	})
}

// Who brings no header learns it at once, though a few bytes more could have been one.
func TestWhatIsNoHeaderIsNotWaitedFor(t *testing.T) {
	for _, sent := range []string{"PING\r\n", "PROXIES", "PROXY \n", "\r\n\r\n\r", "G", "\x16", two(0x31, 0, "")[:13], two(0x21, 0x41, "")[:14]} {
		synctest.Test(t, func(t *testing.T) {
			inner, start := testpipe.New(), time.Now()
			l := proxied.Listen(inner, ten)
			defer l.Close()
			go func() { _, _ = l.Accept() }()
			client, server := inner.Dial(proxy)
			if _, err := io.WriteString(client, sent); err != nil {
				t.Error(err)
			}
			<-server.Closed
			if waited := time.Since(start); waited != 0 {
				t.Errorf("%q is closed after %v, want at once", sent, waited)
			}
		})
	}
}

// The deadline of the header is not that of the connection.
func TestConnectionsAreGivenWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := testpipe.New()
		l := proxied.Listen(inner, ten)
		defer l.Close()
		go func() {
			client, _ := inner.Dial(proxy)
			_, _ = io.WriteString(client, hello)
			time.Sleep(time.Hour)
			_, _ = io.WriteString(client, ", world")
			_ = client.Close()
		}()
		if b, err := io.ReadAll(accept(t, l)); string(b) != "hello, world" || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
	})
}

func TestWhatIsReadInSmallPieces(t *testing.T) {
	inner := testpipe.New()
	l := proxied.Listen(inner, ten)
	defer l.Close()
	go func() {
		client, _ := inner.Dial(proxy)
		_, _ = io.WriteString(client, hello)
		_, _ = io.WriteString(client, ", world")
		_ = client.Close()
	}()
	c, got := accept(t, l), ""
	for b := make([]byte, 2); ; {
		n, err := c.Read(b)
		got += string(b[:n])
		if err != nil {
			break
		}
	}
	if got != "hello, world" {
		t.Errorf("read %q", got)
	}
}

func TestHeadersAwaitedAreBounded(t *testing.T) {
	const most = 1024
	synctest.Test(t, func(t *testing.T) {
		inner := testpipe.New()
		var log logged
		l := proxied.Listen(inner, proxied.Options{From: ten.From, Log: log.logger()})
		defer l.Close()
		accepted := make(chan net.Conn)
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			accepted <- c
		}()
		for range most {
			inner.Dial(proxy)
		}
		_, excess := inner.Dial(proxy)
		<-excess.Closed
		synctest.Wait()
		if n := l.Refused(); n != 1 || !strings.Contains(log.String(), "too many") {
			t.Errorf("%d were refused, want 1; log: %s", n, log.String())
		}
		inner.Dial(stranger)
		if got := (<-accepted).RemoteAddr(); got != net.Addr(stranger) {
			t.Errorf("accepted %v, want who need not send a header", got)
		}
		time.Sleep(proxied.DefaultTimeout)
		synctest.Wait()
		client, _ := inner.Dial(proxy) // there is room again
		go func() { _, _ = io.WriteString(client, hello) }()
		if got := accept(t, l).RemoteAddr().String(); got != "192.0.2.7:1234" {
			t.Errorf("accepted %s, want who sent a header", got)
		}
	})
}

func TestCloseEndsWhatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := testpipe.New()
		l := proxied.Listen(inner, ten)
		go func() {
			client, _ := inner.Dial(proxy)
			_, _ = io.WriteString(client, hello)
		}()
		mine := accept(t, l)
		_, awaited := inner.Dial(proxy)
		client, ready := inner.Dial(proxy) // with a header, and accepted by nobody
		_, _ = io.WriteString(client, hello)
		synctest.Wait()
		start := time.Now()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-awaited.Closed
		<-ready.Closed
		if waited := time.Since(start); waited != 0 {
			t.Errorf("what is awaited is closed after %v, want at once", waited)
		}
		if b := make([]byte, 9); mustRead(t, mine, b) != "hello" {
			t.Error("a connection that was accepted is closed")
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept says %v, want net.ErrClosed", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the second Close says %v, want net.ErrClosed", err)
		}
		synctest.Wait()
		if n := l.Refused(); n != 0 {
			t.Errorf("%d were refused, want none", n)
		}
	})
}

// Closing a server's listener leaves it what it has just accepted.
func TestCloseLeavesWhatWasAccepted(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			inner := testpipe.New()
			l := proxied.Listen(inner, ten)
			go inner.Dial(stranger)
			accept(t, l)
			client, server := inner.Dial(proxy)
			_, _ = io.WriteString(client, hello)
			synctest.Wait() // until the header is read, and somebody has to accept
			accept(t, l)
			l.Close()
			select {
			case <-server.Closed:
				t.Error("a connection that was accepted is closed")
			default:
			}
		})
	}
}

func mustRead(t *testing.T, c net.Conn, b []byte) string {
	t.Helper()
	n, err := c.Read(b)
	if err != nil {
		t.Error(err)
	}
	return string(b[:n])
}

func TestCloseBeforeAnythingIsAccepted(t *testing.T) {
	l := proxied.Listen(testpipe.New(), ten)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept says %v, want net.ErrClosed", err)
	}
}

// Such as too many open files: who accepts decides what to do, and goes on.
func TestErrorsOfTheListenerBelowArePassedOn(t *testing.T) {
	inner := testpipe.New()
	l := proxied.Listen(inner, ten)
	defer l.Close()
	go func() { inner.Incoming <- syscall.EMFILE }()
	_, err := l.Accept()
	if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() {
		t.Errorf("got %v, want the temporary error as it is", err)
	}
	go inner.Dial(stranger)
	if got := accept(t, l).RemoteAddr(); got != net.Addr(stranger) {
		t.Errorf("accepted %v after an error", got)
	}
	inner.Close()
	for range 2 {
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want what the listener below says", err)
		}
	}
}
