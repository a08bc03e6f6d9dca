package proxied_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/weirlimit/weir/internal/server/proxied"
)

// loopback is where the tests' own connections come from.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// listen listens on a free port until the test ends. It answers each connection with the client's address and a line's end, then with what is sent.
func listen(t testing.TB, o proxied.Options) *proxied.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := proxied.Listen(inner, o)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).AddrPort().String()+"\n")
				_, _ = io.Copy(c, c)
				_ = c.(interface{ CloseWrite() error }).CloseWrite()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l
}

func dial(t testing.TB, l net.Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute)) // a hanging test shows its place
	return c.(*net.TCPConn)
}

// ask sends pieces, each in a packet of its own, and returns all that is answered. It is "" if the connection is closed.
func ask(t testing.TB, l net.Listener, pieces ...string) string {
	t.Helper()
	c := dial(t, l)
	_ = c.SetNoDelay(true)
	for _, piece := range pieces {
		if _, err := io.WriteString(c, piece); err != nil {
			break // it was closed for what came before
		}
	}
	_ = c.CloseWrite()
	b, _ := io.ReadAll(c)
	return string(b)
}

// header is that of the version, as the library writes it.
func header(t testing.TB, version byte, source, destination net.Addr) string {
	t.Helper()
	b, err := proxyproto.HeaderProxyFromAddrs(version, source, destination).Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tcp(text string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

// two is a header of version 2: a command, a family, and what follows, whose length is told.
func two(command, family byte, rest string) string {
	return "\r\n\r\n\x00\r\nQUIT\n" + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

// A logged is a log that may be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
