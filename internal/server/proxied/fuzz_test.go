package proxied_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/proxied"
	"github.com/weirlimit/weir/internal/testpipe"
)

// A verdict is what becomes of a connection: whose it is, and what it says after its header. That nobody's is is "".
type verdict struct{ client, rest string }

// judge sends bytes from a proxy, so many at once, and returns what becomes of the connection.
func judge(sent []byte, piece int) verdict {
	inner := testpipe.New()
	l := proxied.Listen(inner, ten)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	client, server := inner.Dial(proxy)
	go func() {
		defer client.Close()
		for len(sent) > 0 {
			n, err := client.Write(sent[:min(piece, len(sent))])
			if err != nil {
				return
			}
			sent = sent[n:]
		}
	}()
	select {
	case <-server.Closed:
		return verdict{}
	case c := <-accepted:
		rest, _ := io.ReadAll(c)
		_ = c.Close()
		return verdict{c.RemoteAddr().String(), string(rest)}
	}
}

// Whatever a proxy sends, and in whatever pieces, what comes after the header is what follows it, and nobody is nothing.
func FuzzListener(f *testing.F) {
	for _, seed := range []string{
		hello, "PROXY UNKNOWN\r\n", "PING\r\n", two(0x21, 0x11, "\xc0\x00\x02\x07\x0a\x00\x00\x01\x04\xd2\x18\xec") + "PING",
		two(0x20, 0x00, ""), two(0x21, 0x00, "abc") + "PING", two(0x21, 0x31, strings.Repeat("\x00", 216)), "\r\n\r\n\x00\r\nQUIT\n", "P", "\r",
	} {
		f.Add([]byte(seed), uint8(2))
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		if len(sent) > 8<<10 {
			t.Skip()
		}
		whole := judge(sent, len(sent)+1)
		if apart := judge(sent, int(piece)+1); apart != whole {
			t.Errorf("%q is %q in pieces of %d, and %q at once", sent, apart, int(piece)+1, whole)
		}
		header, ok := bytes.CutSuffix(sent, []byte(whole.rest))
		switch {
		case whole.client == "":
		case !ok || !bytes.HasPrefix(header, []byte("PROXY ")) && !bytes.HasPrefix(header, []byte("\r\n\r\n\x00\r\nQUIT\n")):
			t.Errorf("%q has no header, and is %q", sent, whole)
		case net.ParseIP(host(whole.client)) == nil:
			t.Errorf("%q is of %q, want an address", sent, whole.client)
		}
	})
}

func host(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
